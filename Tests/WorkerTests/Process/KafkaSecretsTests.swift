// SPDX-License-Identifier: Apache-2.0
import Processes
import Testing

@testable import Worker

@Suite struct KafkaSecretsTests {
    @Test func aChangedPasswordAndAChangedKeyFileAreNamed() throws {
        let folder = try TemporaryFolder()
        func secrets(password: String, key: String) throws -> KafkaSecrets {
            var kafka = Configuration.KafkaSection(brokers: "b:1")
            kafka.options = [
                "sasl.password": password, "client.id": "x",
                "ssl.key.location": try folder.write(Array(key.utf8), to: "key.pem"),
            ]
            return KafkaSecrets(kafka)
        }
        let running = try secrets(password: "one", key: "a")
        #expect(running.changes(to: try secrets(password: "one", key: "a")).isEmpty)
        #expect(
            running.changes(to: try secrets(password: "two", key: "b"))
                == ["kafka.options.ssl.key.location", "kafka.secret_files.sasl.password"])
    }
}
