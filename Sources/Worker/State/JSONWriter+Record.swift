import JSON

extension JSONWriter {
    /// Begins a record that Carillon writes: version and app.
    mutating func beginRecord(app: String) {
        beginObject()
        member("v", 1)
        member("app", app)
    }

    /// Begins a record that tells of an event.
    mutating func beginRecord(app: String, eventID: String) {
        beginRecord(app: app)
        member("event_id", eventID)
    }
}
