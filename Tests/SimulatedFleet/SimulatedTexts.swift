// SPDX-License-Identifier: Apache-2.0
/// The texts that a world's operator wrote, per language.
package struct SimulatedTexts: Sendable {
    package let tag: String
    package let generic: String
    /// `{nick}` and these words.
    package let revoke: String
    /// The text of a revoke without a sender's name.
    package let namelessRevoke: String
    /// The text of the type `PICTURE`.
    package let picture: String
    /// The template `hello`, in pieces around `{name}` and `{what}`.
    package let greeting: String
    package let saying: String
    /// The text of the content key `secret`.
    package let secret: String
    /// What follows the number of a merged alert: one message, and several.
    package let merged: (one: String, other: String)

    package static let chinese = SimulatedTexts(
        tag: "zh-Hans", generic: "你收到一条新消息", revoke: "撤回了一条消息", namelessRevoke: "对方撤回了一条消息", picture: "[图片]",
        greeting: "你好", saying: "说", secret: "有新内容", merged: ("条新消息", "条新消息"))
    package static let english = SimulatedTexts(
        tag: "en", generic: "You have a new message", revoke: " recalled a message",
        namelessRevoke: "A message was recalled", picture: "[Picture]", greeting: "Hello ", saying: " says ",
        secret: "Something new", merged: (" new message", " new messages"))

    package static func of(_ tag: String) -> SimulatedTexts { tag == "en" ? english : chinese }

    package func title(name: String) -> String { greeting + name }
    package func content(name: String, what: String) -> String { name + saying + what }

    private var yaml: String {
        """
          \(tag):
            generic: "\(generic)"
            revoke: "{nick}\(revoke)"
            types: {PICTURE: "\(picture)"}
            templates: {hello: {title: "\(title(name: "{name}"))", content: "\(content(name: "{name}", what: "{what}"))"}}
            content_keys: {secret: "\(secret)"}
            merged: {one: "{count}\(merged.one)", other: "{count}\(merged.other)"}

        """
    }

    static var yaml: String { "languages:\n" + chinese.yaml + english.yaml }
}
