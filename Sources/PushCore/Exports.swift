// `PushID` is part of this module's interface.
@_exported public import APNsProtocol
