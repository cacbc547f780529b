// SPDX-License-Identifier: Apache-2.0
/// The keys that no table knows, of all objects that were read with the tables that share this.
public final class JSONUnknownKeys {
    /// One of them.
    public struct Note {
        /// The object that has it. Valid as long as the document.
        public let object: JSONCursor
        public let name: String
        /// The names that the object's table knows.
        public let known: [String]
    }

    /// Their number since the owner set it to 0.
    public var count = 0
    /// Nil counts them only, as a worker does: a note costs texts.
    public var notes: [Note]?

    /// A record may have very many of them.
    public static let notesMax = 100

    public init() {}

    @usableFromInline
    @inline(never)
    func add(_ name: JSONCursor, of object: JSONCursor, known: () -> [String]) {
        count &+= 1
        guard let noted = notes?.count, noted < Self.notesMax else { return }
        notes?.append(Note(object: object, name: name.string ?? "", known: known()))
    }
}
