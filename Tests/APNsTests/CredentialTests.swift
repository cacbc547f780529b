// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import EventLoop
import JSON
import Support
import Testing

@testable import APNs

@Suite struct CredentialTests {
    static let minute: Int64 = 60_000
    static let slotStart: Int64 = 1_700_000_000_000 - 1_700_000_000_000 % TokenPlan.slotMs

    @Test func endpointsAreReadFromURLs() throws {
        let plain = try APNsEndpoint(url: "https://api.push.apple.com")
        #expect(plain.host == "api.push.apple.com" && plain.port == 443)
        #expect(plain.authority == "api.push.apple.com")
        let other = try APNsEndpoint(url: "https://127.0.0.1:2197/")
        #expect(other.port == 2197 && other.authority == "127.0.0.1:2197")
        #expect(try APNsEndpoint(url: "https://[::1]:9").authority == "[::1]:9")
        for bad in ["http://x", "https://", "https://x:0", "https://x:99999", "https://x/path", "https://a b"] {
            #expect(throws: APNsFault.self, "\(bad)") { _ = try APNsEndpoint(url: bad) }
        }
    }

    @Test func credentialFaultsNameTheFile() {
        #expect {
            _ = try APNsCredential.token(keyFile: "/nonexistent.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        } throws: {
            ($0 as? APNsFault)?.description.contains("/nonexistent.p8") == true
        }
        #expect(throws: APNsFault.self) {
            _ = try APNsCredential.token(keyFile: "/dev/null", keyID: "short", teamID: "DEF123GHIJ")
        }
        #expect(throws: APNsFault.self) {
            _ = try APNsCredential.token(keyFile: "/dev/null", keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        }
    }

    @Test(arguments: [false, true]) func anArchiveIsOpenedByItsPassword(isOld: Bool) throws {
        let folder = try TemporaryFolder()
        let minted = try MintedCertificate(validUntil: 86_400)
        let archive = try minted.writeArchive(password: "opens it", isOld: isOld, to: "push.p12", in: folder)
        let right = try folder.write(Array("opens it\n".utf8), to: "right")
        let wrong = try folder.write(Array("opens not".utf8), to: "wrong")
        let credential = try APNsCredential.archive(file: archive, passwordFile: right)
        let end = try #require(try credential.validUntilSeconds())
        #expect(abs(end - Loop.wallMs() / 1000 - 86_400) < 3600)
        for passwordFile in [wrong, nil] {
            #expect {
                _ = try APNsCredential.archive(file: archive, passwordFile: passwordFile)
            } throws: {
                ($0 as? APNsFault)?.description == "\(archive): the password does not open the PKCS#12 archive"
            }
        }
        for broken in [right, "/nonexistent.p12"] {
            #expect {
                _ = try APNsCredential.archive(file: broken, passwordFile: right)
            } throws: {
                ($0 as? APNsFault)?.description.hasPrefix("\(broken): ") == true
            }
        }
        #expect(try APNsCredential.archive(file: archive, passwordFile: right).isToken == false)
    }

    @Test func anArchiveWithoutAPasswordNeedsNoFile() throws {
        let folder = try TemporaryFolder()
        let archive = try MintedCertificate().writeArchive(password: "", to: "push.p12", in: folder)
        #expect(try APNsCredential.archive(file: archive, passwordFile: nil).validUntilSeconds() != nil)
    }

    @Test func aCertificateAndAStrangersKeyAreRefused() throws {
        let folder = try TemporaryFolder()
        let minted = try MintedCertificate()
        let chain = try folder.write(minted.chainPEM, to: "chain.pem")
        let key = try folder.write(minted.privateKeyPEM, to: "key.pem")
        let other = try folder.write(MintedCertificate().privateKeyPEM, to: "other.pem")
        #expect(try APNsCredential.certificate(chainFile: chain, keyFile: key).validUntilSeconds() != nil)
        #expect {
            _ = try APNsCredential.certificate(chainFile: chain, keyFile: other)
        } throws: {
            ($0 as? APNsFault)?.description.hasPrefix("\(chain): ") == true
        }
    }

    @Test func tokenIsAnES256JWTOfKeyTeamAndTime() throws {
        let key = try PrivateKey.generate()
        let token = try ProviderToken.mint(
            key: key, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", issuedAtMs: 1_700_000_000_999, version: 1)
        let text = String(decoding: token.header, as: UTF8.self)
        #expect(text.hasPrefix("bearer "))
        let parts = text.dropFirst(7).split(separator: ".").map { Array($0.utf8) }
        try #require(parts.count == 3)
        let head = try #require(Base64URL.decode(parts[0]))
        let claims = try #require(Base64URL.decode(parts[1]))
        #expect(String(decoding: head, as: UTF8.self) == #"{"alg":"ES256","kid":"ABC123DEFG"}"#)
        #expect(String(decoding: claims, as: UTF8.self) == #"{"iss":"DEF123GHIJ","iat":1700000000}"#)
        #expect(Base64URL.decode(parts[2])?.count == 64)
    }

    @Test func issueTimeIsTheSlotOfAnyProcess() {
        var early = TokenPlan()
        var late = TokenPlan()
        same(early.use(nowMs: Self.slotStart + Self.minute), .mint(issuedAtMs: Self.slotStart, version: 1))
        same(late.use(nowMs: Self.slotStart + 30 * Self.minute), .mint(issuedAtMs: Self.slotStart, version: 1))
        same(early.use(nowMs: Self.slotStart + 30 * Self.minute), .keep)
    }

    @Test func connectionKeepsItsTokenForTwentyOneMinutes() {
        let newest = Self.slotStart + TokenPlan.slotMs
        func adopts(_ afterMinutes: Int64) -> Bool {
            let first = Self.slotStart + 29 * Self.minute
            return TokenPlan.adopts(
                newestIssuedAtMs: newest, over: Self.slotStart, firstUsedAtMs: first,
                nowMs: first + afterMinutes * Self.minute)
        }
        #expect(!adopts(2))
        #expect(!adopts(20))
        #expect(adopts(21))
    }

    /// One connection over two days, asked each minute: the rules of Apple hold at every instant.
    @Test(arguments: 0..<30) func noTokenIsRenewedTooSoonOrKeptTooLong(startMinute: Int64) throws {
        var plan = TokenPlan()
        let start = Self.slotStart + startMinute * Self.minute
        var used: (issued: Int64, first: Int64)?
        for step in 0..<(48 * 60) {
            let now = start + Int64(step) * Self.minute
            _ = plan.use(nowMs: now)
            let newest = try #require(plan.issuedAtMs)
            guard let current = used else {
                used = (newest, now)
                continue
            }
            if TokenPlan.adopts(
                newestIssuedAtMs: newest, over: current.issued, firstUsedAtMs: current.first, nowMs: now)
            {
                #expect(now - current.first >= 20 * Self.minute)
                used = (newest, now)
            }
            #expect(now - (used?.issued ?? 0) <= 55 * Self.minute)
        }
    }

    /// Two servers whose clocks differ from ours by half a minute take every token at every instant: none is from their
    /// future, none an hour old (pigeon renewed ten seconds before the hour).
    @Test(arguments: [-30, 30] as [Int64]) func aSkewOfHalfAMinuteRefusesNoToken(skewSeconds: Int64) throws {
        for startSecond in stride(from: 0 as Int64, to: 1800, by: 97) {
            var plan = TokenPlan()
            var used: (issued: Int64, first: Int64)?
            let start = Self.slotStart + startSecond * 1000
            for now in stride(from: start, to: start + 3 * 3_600_000, by: 10_000) {
                _ = plan.use(nowMs: now)
                // Refused by a third party in the middle: signed anew.
                if now == start + 600_000 { _ = plan.expired(version: 1, nowMs: now) }
                let newest = try #require(plan.issuedAtMs)
                let adopts = used.map {
                    TokenPlan.adopts(
                        newestIssuedAtMs: newest, over: $0.issued, firstUsedAtMs: $0.first, nowMs: now)
                }
                if adopts ?? true { used = (newest, now) }
                let age = now + skewSeconds * 1000 - (used?.issued ?? 0)
                #expect((0..<3_600_000).contains(age), "\(age) ms old, begun at second \(startSecond)")
            }
        }
    }

    @Test func anExpiredTokenIsSignedAgainOnce() {
        var plan = TokenPlan()
        let now = Self.slotStart + 5 * Self.minute
        same(plan.use(nowMs: now), .mint(issuedAtMs: Self.slotStart, version: 1))
        same(plan.expired(version: 1, nowMs: now), .mint(issuedAtMs: now - Self.minute, version: 2))
        same(plan.expired(version: 1, nowMs: now + 1), .alreadyRenewed)
        same(plan.expired(version: 2, nowMs: now + 2), .pause)
        same(plan.use(nowMs: now + 3), .keep)
    }

    @Test func forcedTokenOutlivesTheNextSlotBorder() {
        var plan = TokenPlan()
        let border = Self.slotStart + TokenPlan.slotMs
        _ = plan.use(nowMs: border - 2 * Self.minute)
        _ = plan.expired(version: 1, nowMs: border - Self.minute)
        same(plan.use(nowMs: border + Self.minute), .keep)
        same(plan.use(nowMs: border + 20 * Self.minute), .mint(issuedAtMs: border, version: 3))
    }

    @Test func tooManyUpdatesStopsSigning() {
        var plan = TokenPlan()
        let border = Self.slotStart + TokenPlan.slotMs
        _ = plan.use(nowMs: border - Self.minute)
        same(plan.tooManyUpdates(nowMs: border - Self.minute), true)
        same(plan.tooManyUpdates(nowMs: border - Self.minute + 1), false)
        same(plan.use(nowMs: border + 10 * Self.minute), .keep)
        same(plan.expired(version: 1, nowMs: border), .pause)
        same(plan.use(nowMs: border + 20 * Self.minute + 1), .mint(issuedAtMs: border, version: 2))
    }

    @Test func clockThatFellBackSignsUnderTheRealTime() {
        var plan = TokenPlan()
        _ = plan.use(nowMs: Self.slotStart + 600 * Self.minute)
        same(plan.use(nowMs: Self.slotStart + Self.minute), .mint(issuedAtMs: Self.slotStart, version: 2))
    }

    @Test func everyProcessSignsTheIdenticalToken() throws {
        let key = try World.key.get()
        let again = try PrivateKey(pem: try key.pem())
        let now = Self.slotStart + 7 * Self.minute
        let one = TokenSource(key: key, keyID: "ABC123DEFG", teamID: "DEF123GHIJ").current(nowMs: now)
        let other = TokenSource(key: again, keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
            .current(nowMs: now + 20 * Self.minute)
        #expect(one?.header == other?.header && one != nil)
    }

    @Test func tokenRenewedTooOftenIsTakenBack() throws {
        let source = TokenSource(key: try World.key.get(), keyID: "ABC123DEFG", teamID: "DEF123GHIJ")
        let border = Self.slotStart + TokenPlan.slotMs
        let old = try #require(source.current(nowMs: border - Self.minute))
        let new = try #require(source.current(nowMs: border + Self.minute))
        #expect(old.header != new.header)
        source.holdSigning(nowMs: border + 2 * Self.minute)
        source.holdSigning(nowMs: border + 2 * Self.minute + 1)
        let kept = try #require(source.current(nowMs: border + 3 * Self.minute))
        #expect(kept.header == old.header && kept.version > new.version)
        // Twenty-one minutes later the throttle is over, and the slot's token is shown again.
        #expect(source.current(nowMs: border + 24 * Self.minute)?.header == new.header)
    }

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ] as [(String, Int64)])
    func datesOfAnswersAreRead(text: String, seconds: Int64) {
        #expect(HTTPDate.seconds(text.utf8) == seconds)
    }

    @Test(arguments: [
        "", "Sunday, 06-Nov-94 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Xxx 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 28:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 19é4 08:49:37 GMT",
    ])
    func otherTextIsNoDate(text: String) {
        #expect(HTTPDate.seconds(text.utf8) == nil)
    }

    @Test func gateOpensOnlyByItsProbe() {
        var gate = CredentialGate(probeNanos: 100)
        same(gate.allowance(nowNanos: 0), .max)
        same(gate.refused(nowNanos: 10), true)
        same(gate.refused(nowNanos: 10), false)
        same(gate.allowance(nowNanos: 109), 0)
        same(gate.proven(), false)
        same(gate.allowance(nowNanos: 110), 1)
        gate.submitted()
        same(gate.allowance(nowNanos: 111), 0)
        same(gate.proven(), true)
        same(gate.allowance(nowNanos: 112), .max)
    }

    @Test func lostProbeIsTriedAgain() {
        var gate = CredentialGate(probeNanos: 100)
        _ = gate.refused(nowNanos: 0)
        gate.submitted()
        gate.probeLost(nowNanos: 150)
        same(gate.allowance(nowNanos: 174), 0)
        same(gate.allowance(nowNanos: 175), 1)
    }
}
