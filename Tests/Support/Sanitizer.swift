// SPDX-License-Identifier: Apache-2.0
import Glibc

/// The sanitizer of this process, which has an allocator of its own and terabytes of shadow memory.
public enum Sanitizer {
    public static let isOn = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}
