// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
    name: "apns-send",
    dependencies: [.package(name: "carillon", path: "../..")],
    targets: [
        .executableTarget(name: "apns-send", dependencies: [.product(name: "APNs", package: "carillon")])
    ])
