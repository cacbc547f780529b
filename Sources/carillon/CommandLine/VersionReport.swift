// SPDX-License-Identifier: Apache-2.0
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

/// `carillon --version`: the version of Carillon and of every linked library.
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

    static var text: TerminalText {
        var text: TerminalText = "carillon \(WorkerProcess.version)\n"
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
