// SPDX-License-Identifier: Apache-2.0
// The protocol's types are part of this library's interface, so that users need no second import.
@_exported public import APNsProtocol
