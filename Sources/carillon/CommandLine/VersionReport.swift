// SPDX-License-Identifier: Apache-2.0
import CBuild
import Console
import Crypto
import EventLoop
import HTTP2
import JSON
import Kafka
import Redis
import Worker
import YAML
import Zstd

/// `carillon --version`: the version of Carillon and of every linked library, and which build it is.
///
/// Each library reports its own version if it can. Otherwise the version is that of the headers at build time.
enum VersionReport {
    private struct Entry {
        var name: String
        var version: String
        /// The library has no function for it.
        var isOfHeaders = false
    }

    private static var entries: [Entry] {
        [
            Entry(name: "librdkafka", version: KafkaConfiguration.libraryVersion),
            Entry(name: "hiredis", version: RedisLibrary.headerVersion, isOfHeaders: true),
            Entry(name: "nghttp2", version: HTTP2Library.version),
            Entry(name: "OpenSSL", version: OpenSSLLibrary.version),
            Entry(name: "libevent", version: EventLibrary.version),
            Entry(name: "simdjson", version: JSONLibrary.headerVersion, isOfHeaders: true),
            Entry(name: "libyaml", version: YAMLLibrary.version),
            Entry(name: "zstd", version: ZstdLibrary.version),
            Entry(name: "glibc", version: EventLibrary.systemVersion),
        ] + (Allocator.version.map { [Entry(name: "jemalloc", version: $0)] } ?? [])
    }

    private static var kind: String { String(cString: cbuild_kind()) }

    /// Commit and date of a build that knows them.
    private static var source: [(name: StaticString, value: String)] {
        [("commit", String(cString: cbuild_commit())), ("date", String(cString: cbuild_date()))].filter {
            !$0.value.isEmpty
        }
    }

    static var text: TerminalText {
        var text: TerminalText = "carillon \(WorkerProcess.version)\n"
        let build = ([kind] + source.map { "\($0.name) \($0.value)" }).joined(separator: ", ")
        text += "  \(Style.padded("build", to: 12))\(build)\n"
        for entry in entries {
            let note: TerminalText = entry.isOfHeaders ? Style.dim("  (version at build time)") : ""
            text += "  \(Style.padded("\(entry.name)", to: 12))\(entry.version)\(note)\n"
        }
        return text
    }

    static var json: String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("version", WorkerProcess.version)
        writer.member("build", kind)
        for (name, value) in source { writer.member(name, value) }
        writer.key("libraries")
        writer.beginArray()
        for entry in entries {
            writer.beginObject()
            writer.member("name", entry.name)
            writer.member("version", entry.version)
            writer.member("asked", !entry.isOfHeaders)
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }
}
