// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct TokenRecordTests {
    @Test(arguments: [(Int64?.none, true), (6, true), (5, false), (4, false)])
    func a410IsAboutTheTokenAsItWasThen(timestampMs: Int64?, isDead: Bool) {
        let token = TokenRecord(hex: "aa", environment: .sandbox, topic: "com.example.im", type: .alert, boundMs: 5)
        #expect(token.isDead(sinceMs: timestampMs) == isDead)
    }
}
