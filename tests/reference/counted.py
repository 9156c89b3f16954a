"""The counted random numbers of base/random.h, for scripts that make references."""
WORD = (1 << 64) - 1


def stream(name, first, second):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & WORD
    for part in (first, second):
        value = (value + part * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) & WORD
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & WORD
        value = (value ^ value >> 27) * 0x94D049BB133111EB & WORD
        value ^= value >> 31
    return value


def philox(seed, stream_number, counter):
    c = [counter & 0xFFFFFFFF, counter >> 32, stream_number & 0xFFFFFFFF, stream_number >> 32]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c
