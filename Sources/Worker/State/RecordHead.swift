// SPDX-License-Identifier: Apache-2.0
import JSON

extension JSONWriter {
    /// Begins an output record: version and app.
    mutating func beginRecord(app: String) {
        beginObject()
        member("v", 1)
        member("app", app)
    }

    /// Begins an output record about an event.
    mutating func beginRecord(app: String, eventID: String) {
        beginRecord(app: app)
        member("event_id", eventID)
    }
}
