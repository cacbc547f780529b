extension WorkerProcess {
    /// Of this program: the topmost of CHANGELOG.md.
    public static let version = "0.9.0"
}
