// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Work with pushes to one user's devices: a recipient of an event, or a badge update. They share the way of a push from the
/// device's queue to APNs' answer.
class PushJob {
    final let app: AppContext
    final let uid: String
    final var ref = WorkRef.none
    /// Every device with a route so far. A later round appends, so that an answer's index stays valid.
    final var devices: [DeviceWork] = []
    /// Time of the last round's reads, monotonic; 0 if each push is checked.
    final var readNanos: UInt64 = 0

    init(app: AppContext, uid: String) {
        self.app = app
        self.uid = uid
    }

    final func tag(_ question: Question, _ index: Int = 0) -> UInt64 { Tag(ref, question, index: index).bits }

    final func deviceRef(_ index: Int) -> DeviceRef { DeviceRef(work: ref, device: index) }

    /// The device's key in the process, hashed only if its push was not queued yet.
    final func deviceKey(_ index: Int) -> UInt64 {
        let known = devices[index].queueKey
        return known != 0 ? known : DeviceKey.make(app: app.id, uid: uid, device: devices[index].route.device)
    }

    /// - Returns: whether the device's push is queued or in the APNs client; false for an unknown device.
    final func isPushing(_ index: Int) -> Bool { index < devices.count && devices[index].phase.isPushing }

    /// Gives up what its pushes are made of, if it needs that no longer.
    func leaveContentIfSent() {}
}
