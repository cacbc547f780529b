// SPDX-License-Identifier: Apache-2.0
// `PushID` is part of this module's interface.
@_exported public import APNsProtocol
