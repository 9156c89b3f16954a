// Element by element of operands that may be repeated along any dimension.

// Where the operands' elements are that element i of the result is made of.
struct broadcast_places {
    uint64_t at[3];
};

DEVICE struct broadcast_places broadcast_find(const struct cuda_broadcast_args *a, uint64_t i) {
    struct broadcast_places places = {{0, 0, 0}};
    for (uint32_t d = a->rank; d-- > 0;) {
        const uint64_t at = i % a->dims[d];
        i /= a->dims[d];
        UNROLLED
        for (uint32_t k = 0; k < 3; k++)
            places.at[k] += at * a->strides[k][d];
    }
    return places;
}

// Whether a comes before b where the largest is looked for, or the least: what is not a number
// does.
DEVICE uint32_t combine_wins(float a, float b, uint32_t is_least) {
    return (is_least ? a < b : a > b) || (a != a && b == b);
}

// Operands that are equal share the gradient.
DEVICE float combine_share(float dy, float a, float b, uint32_t of, uint32_t is_least) {
    const float found = combine_wins(b, a, is_least) ? b : a;
    const uint32_t a_has = a == found, b_has = b == found;
    if (!(of == 0 ? a_has : b_has)) return 0.0f;
    return a_has && b_has ? dy / 2.0f : dy;
}

// A power, or a slope of it, whose exponents are the last operand, of the argument's type.
DEVICE float combine_raised(const struct cuda_broadcast_args *a, const struct broadcast_places *p) {
    const float *x = (const float *)a->x[0], *base = (const float *)a->x[1];
    if (a->what == PEN_CUDA_POW)
        return power_of(x[p->at[0]], read_number(a->x[1], a->type, p->at[1]));
    const float dy = x[p->at[0]], y = base[p->at[1]];
    const double z = read_number(a->x[2], a->type, p->at[2]);
    if (a->what == PEN_CUDA_POW_BASE) return z == 0.0 ? 0.0f : dy * (float)z * power_of(y, z - 1.0);
    return y == 0.0f && z >= 0.0 ? 0.0f : dy * power_of(y, z) * natural_log(y);
}

DEVICE uint32_t combine_raises(uint32_t what) {
    return what == PEN_CUDA_POW || what == PEN_CUDA_POW_BASE || what == PEN_CUDA_POW_EXPONENT;
}

DEVICE float combine_of(const struct cuda_broadcast_args *a, float x, float y, float z) {
    switch (a->what) {
    case PEN_CUDA_ADD:
        return x + y;
    case PEN_CUDA_SUB:
        return x - y;
    case PEN_CUDA_MUL:
        return x * y;
    case PEN_CUDA_DIV:
        return x / y;
    case PEN_CUDA_MAX:
    case PEN_CUDA_MIN:
        return combine_wins(y, x, a->what == PEN_CUDA_MIN) ? y : x;
    case PEN_CUDA_DIV_DIVISOR:
        return -x * y / z;
    case PEN_CUDA_PRELU:
        return x < 0.0f ? x * y : x;
    case PEN_CUDA_PRELU_X:
        return y < 0.0f ? x * z : x;
    case PEN_CUDA_PRELU_SLOPE:
        return y < 0.0f ? x * y : 0.0f;
    case PEN_CUDA_SCALE:
        return x * a->factor;
    case PEN_CUDA_MOD:
        return remainder_of(x, y);
    default:
        return combine_share(x, y, z, a->of, a->what == PEN_CUDA_MIN_BACKWARD);
    }
}

KERNEL(combine, cuda_broadcast_args) {
    const float *x = (const float *)a.x[0], *y = (const float *)a.x[1], *z = (const float *)a.x[2];
    EACH(i, a.count) {
        const struct broadcast_places p = broadcast_find(&a, i);
        if (combine_raises(a.what)) {
            store((float *)a.y, i, combine_raised(&a, &p), a.adds);
            continue;
        }
        const float second = y ? y[p.at[1]] : 0.0f, third = z ? z[p.at[2]] : 0.0f;
        store((float *)a.y, i, combine_of(&a, x[p.at[0]], second, third), a.adds);
    }
}

// Element i of operand k of an extremum.
DEVICE float shares_read(const struct cuda_shares_args *a, uint32_t k, uint64_t i) {
    uint64_t at = 0;
    for (uint32_t d = a->rank; d-- > 0;) {
        at += i % a->dims[d] * a->strides[k][d];
        i /= a->dims[d];
    }
    return a->x[k][at];
}

// In one turn over the operands: who comes before all so far begins to count those who are equal.
KERNEL(combine_shares, cuda_shares_args) {
    EACH(i, a.count) {
        float found = shares_read(&a, 0, i);
        uint32_t equals = found == found, has = a.of == 0;
        for (uint32_t k = 1; k < a.operands; k++) {
            const float x = shares_read(&a, k, i);
            if (combine_wins(x, found, a.is_least)) {
                found = x;
                equals = has = 0;
            }
            if (x != found) continue;
            equals += 1;
            has = has || k == a.of;
        }
        store(a.y, i, has && equals > 0 ? a.dy[i] / (float)equals : 0.0f, a.adds);
    }
}

// Of no integer that is divided by 0.
DEVICE int64_t combine_quotient(int64_t x, int64_t y) {
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

// The remainder of x / y, which has the sign of y or, where `as_x`, of x.
DEVICE int64_t combine_remainder(int64_t x, int64_t y, uint32_t as_x) {
    const int64_t remainder = y == -1 ? 0 : x % y;
    const uint32_t is_other = remainder != 0 && (remainder < 0) != (y < 0);
    return is_other && !as_x ? remainder + y : remainder;
}

// By squaring. Below 0 a power is its truncated reciprocal, and that of 0 is 0.
DEVICE int64_t combine_power(int64_t x, int64_t y) {
    const int64_t sign = y % 2 == 0 ? 1 : x;
    if (y < 0) return x == 1 || x == -1 ? sign : 0;
    uint64_t power = 1, factor = (uint64_t)x;
    for (uint64_t left = (uint64_t)y; left > 0; left >>= 1) {
        if (left & 1) power *= factor;
        factor *= factor;
    }
    return (int64_t)power;
}

// Integers wrap.
DEVICE int64_t combine_of_whole(const struct cuda_broadcast_args *a, int64_t x, int64_t y) {
    switch (a->what) {
    case PEN_CUDA_ADD:
        return (int64_t)((uint64_t)x + (uint64_t)y);
    case PEN_CUDA_SUB:
        return (int64_t)((uint64_t)x - (uint64_t)y);
    case PEN_CUDA_MUL:
        return (int64_t)((uint64_t)x * (uint64_t)y);
    case PEN_CUDA_DIV:
        return combine_quotient(x, y);
    case PEN_CUDA_MOD:
        return combine_remainder(x, y, a->of);
    case PEN_CUDA_POW:
        return combine_power(x, y);
    case PEN_CUDA_SIZE:
        return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
    case PEN_CUDA_SIGN_OF:
        return (x > 0) - (x < 0);
    case PEN_CUDA_MAX:
        return x > y ? x : y;
    default:
        return x < y ? x : y;
    }
}

KERNEL(combine_whole, cuda_broadcast_args) {
    EACH(i, a.count) {
        const struct broadcast_places p = broadcast_find(&a, i);
        const int64_t x = a.x[0] ? read_whole(a.x[0], a.type, p.at[0]) : 0;
        const int64_t y = a.x[1] ? read_whole(a.x[1], a.type, p.at[1]) : 0;
        const uint32_t is_wrong = y == 0 && (a.what == PEN_CUDA_DIV || a.what == PEN_CUDA_MOD);
        if (is_wrong) raise_to(a.error, 1);
        write_whole(a.y, a.type, i, is_wrong ? 0 : combine_of_whole(&a, x, y));
    }
}

// -1: less, 0: equal, 1: greater, 2: none of them.
DEVICE int32_t compare_of(const struct cuda_broadcast_args *a, const struct broadcast_places *p) {
    if (a->type > PEN_CUDA_FLOAT64) {
        const int64_t x = read_whole(a->x[0], a->type, p->at[0]);
        const int64_t y = read_whole(a->x[1], a->type, p->at[1]);
        return x < y ? -1 : x > y ? 1 : 0;
    }
    const double x = read_number(a->x[0], a->type, p->at[0]);
    const double y = read_number(a->x[1], a->type, p->at[1]);
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

DEVICE uint32_t compare_holds(const struct cuda_broadcast_args *a,
                              const struct broadcast_places *p) {
    if (a->what >= PEN_CUDA_ISNAN) {
        const double x = read_number(a->x[0], a->type, p->at[0]);
        if (a->what == PEN_CUDA_ISNAN) return x != x;
        return x == x && x - x != 0.0 && (a->of & (x > 0.0 ? 1u : 2u)) != 0;
    }
    if (a->what >= PEN_CUDA_AND) {
        const uint32_t x = read_whole(a->x[0], a->type, p->at[0]) != 0;
        const uint32_t y = a->x[1] && read_whole(a->x[1], a->type, p->at[1]) != 0;
        return a->what == PEN_CUDA_AND   ? x && y
               : a->what == PEN_CUDA_OR  ? x || y
               : a->what == PEN_CUDA_XOR ? x != y
                                         : !x;
    }
    const int32_t order = compare_of(a, p);
    switch (a->what) {
    case PEN_CUDA_EQUAL:
        return order == 0;
    case PEN_CUDA_LESS:
        return order == -1;
    case PEN_CUDA_LESS_OR_EQUAL:
        return order == -1 || order == 0;
    case PEN_CUDA_GREATER:
        return order == 1;
    default:
        return order == 0 || order == 1;
    }
}

KERNEL(compare, cuda_broadcast_args) {
    EACH(i, a.count) {
        const struct broadcast_places p = broadcast_find(&a, i);
        ((unsigned char *)a.y)[i] = (unsigned char)compare_holds(&a, &p);
    }
}

// The second operand where the first holds, else the third.
KERNEL(choose, cuda_broadcast_args) {
    EACH(i, a.count) {
        const struct broadcast_places p = broadcast_find(&a, i);
        const uint32_t k = ((const unsigned char *)a.x[0])[p.at[0]] ? 1 : 2;
        copy_element(a.y, i, k == 1 ? a.x[1] : a.x[2], k == 1 ? p.at[1] : p.at[2], a.bytes, a.adds);
    }
}
