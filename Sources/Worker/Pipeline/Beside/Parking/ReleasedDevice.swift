// SPDX-License-Identifier: Apache-2.0
/// A device whose push APNs accepted after it had asked to leave the device alone: all shards release what waits for it.
package struct ReleasedDevice: Sendable {
    let app: String
    let uid: String
    let device: String

    var key: UInt64 { DeviceKey.make(app: app, uid: uid, device: device) }
}
