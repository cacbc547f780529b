extension WorkerProcess {
    /// Of this program: the topmost of CHANGELOG.md.
    public static let version = "1.0.0"
}
