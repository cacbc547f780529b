// SPDX-License-Identifier: Apache-2.0
import Crypto
import Testing

@Suite struct KeyTests {
    @Test func aSignatureIs64BytesAndVerifiesOnlyItsMessage() throws {
        let key = try PrivateKey.generate()
        let message = Array("header.claims".utf8)
        let other = try PrivateKey.generate().publicKey()
        // Short scalars need padding: one in 128 signatures has one, so many are made.
        for _ in 0..<300 {
            let signature = try key.signES256(message)
            #expect(signature.count == 64)
            #expect(try key.publicKey().verifyES256(signature, of: message))
            #expect(!other.verifyES256(signature, of: message))
            var bent = signature
            bent[40] ^= 1
            #expect(try !key.publicKey().verifyES256(bent, of: message))
        }
        #expect(try !key.publicKey().verifyES256(key.signES256(message), of: Array("header.claimz".utf8)))
    }

    @Test(arguments: [0, 1, 63, 65, 128])
    func aSignatureOfWrongLengthIsRefused(length: Int) throws {
        let key = try PrivateKey.generate().publicKey()
        #expect(!key.verifyES256([UInt8](repeating: 1, count: length), of: []))
    }

    @Test func zeroScalarsAreRefusedNotTrapped() throws {
        #expect(try !PrivateKey.generate().publicKey().verifyES256([UInt8](repeating: 0, count: 64), of: [1]))
    }

    @Test func aKeySurvivesItsPEM() throws {
        let key = try PrivateKey.generate()
        let pem = try key.pem()
        #expect(String(decoding: pem, as: UTF8.self).hasPrefix("-----BEGIN PRIVATE KEY-----"))
        let again = try PrivateKey(pem: pem)
        #expect(try key.publicKey().verifyES256(again.signES256([1, 2, 3]), of: [1, 2, 3]))
    }

    @Test(arguments: ["", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
    func textThatIsNoKeyIsNamedSo(text: String) {
        #expect(throws: CryptoFault.self) { try PrivateKey(pem: Array(text.utf8)) }
        #expect(throws: CryptoFault.self) { try PublicKey(pem: Array(text.utf8)) }
    }

    @Test func aKeyOfAnotherCurveIsRefusedByName() throws {
        // Made with `openssl ecparam -name secp384r1 -genkey`; protects nothing.
        let pem = """
            -----BEGIN PRIVATE KEY-----
            MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDBU/esc87NLPMnEjdqQ
            wD/6HZ3ukxxEwQzzaN+iFX2EXpx3nSivyYGF1ikQUtD1l8ChZANiAATD+Xd0wIIX
            zdFPwCUGNX8ABlXQ51yBrP7KKf+k5ZffAdp5C3DZetGkE8nAhqkqsnLOvW0g/V6H
            B7jvB55vPVp1ecI536Ltw1Muqii0NLUjcd3Ug1zTzISaEmM4ECQW6yA=
            -----END PRIVATE KEY-----

            """
        let fault = #expect(throws: CryptoFault.self) { try PrivateKey(pem: Array(pem.utf8)) }
        #expect(fault?.code == .wrongCurve)
    }

    /// RFC 6979, appendix A.2.5: P-256 with SHA-256.
    @Test(arguments: [
        (
            "sample",
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
                + "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
        ),
        (
            "test",
            "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367"
                + "019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083"
        ),
    ])
    func deterministicSignatureIsTheStandards(message: String, signature: String) throws {
        // The appendix's key in SEC 1; it is public since 2013.
        let pem = """
            -----BEGIN EC PRIVATE KEY-----
            MDECAQEEIMmvqdhFunUWa1whV2ex1pNOUMPbNuibEnuKYisSD2choAoGCCqGSM49
            AwEH
            -----END EC PRIVATE KEY-----

            """
        let key = try PrivateKey(pem: Array(pem.utf8))
        let signed = try key.signES256Deterministically(Array(message.utf8))
        #expect(signed.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == signature)
    }

    @Test func deterministicSignaturesVerify() throws {
        for number in 0..<200 {
            let key = try PrivateKey.generate()
            let message = Array("header.claims \(number)".utf8)
            let signature = try key.signES256Deterministically(message)
            #expect(try key.publicKey().verifyES256(signature, of: message))
            #expect(try key.signES256Deterministically(message) == signature)
        }
    }
}
