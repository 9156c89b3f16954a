#include "scheduler/data/image/image_bmp.h"

#include <inttypes.h>
#include <string.h>

#include "base/memory.h"
#include "scheduler/data/image/image_room.h"

#define BMP_FILE_HEADER 14 // bytes before the header that says what the picture is
#define BMP_MASKS_AT                                                                               \
    (BMP_FILE_HEADER + 40) // in headers that have masks, and behind those that do not
#define BMP_PALETTE_LIMIT 256
// A step of RLE may be a jump over 255 rows: as with a PNG, few bytes are not trusted with more.
#define BMP_PIXELS_PER_BYTE (1032u * 8)

// As files number them. OS/2 gives 3 and 4 another meaning.
typedef enum bmp_packing {
    BMP_PLAIN,
    BMP_RLE8,
    BMP_RLE4,
    BMP_MASKS,
    BMP_JPEG,
    BMP_PNG,
    BMP_ALPHA_MASKS,
} bmp_packing;

// Where a colour lies in a pixel.
typedef struct bmp_channel {
    uint32_t shift;
    uint32_t maximum; // all ones
} bmp_channel;

// Where the packed bytes of a row begin, and the pixel that they begin with.
typedef struct bmp_row_start {
    uint32_t at; // 0: the row has none, and is blank
    uint32_t x;
} bmp_row_start;

typedef struct image_bmp {
    const uint8_t *bytes;
    size_t size;
    const char *path;
    uint32_t header_bytes;
    pen_image_size picture;
    bool is_top_down;
    uint32_t bits; // a pixel
    uint32_t packing;
    uint32_t palette_count;
    uint8_t palette[BMP_PALETTE_LIMIT][3]; // blue, green, red
    bmp_channel channels[3];               // red, green, blue
    size_t pixels_at;
    pen_image_room row;    // [width][3], then [width] places in the palette
    bmp_row_start *starts; // [height], of a packed picture
} image_bmp;

static const char *const bmp_endings[] = {".bmp", NULL};

static uint32_t bmp_number(const uint8_t *at, size_t bytes) {
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint32_t)at[i] << 8 * i;
    return number;
}

// Two letters would take many a text for a picture: the length of the header follows, which is
// small.
static bool bmp_is(const uint8_t *bytes, size_t size) {
    if (size < BMP_FILE_HEADER + 4 || bytes[0] != 'B' || bytes[1] != 'M') return false;
    const uint32_t header_bytes = bmp_number(bytes + BMP_FILE_HEADER, 4);
    return header_bytes >= 12 && header_bytes < 256;
}

static pen_status bmp_create_reader(void **out_reader) {
    image_bmp *bmp = pen_memory_allocate(1, sizeof *bmp);
    if (bmp == NULL) return pen_error_out_of_memory();
    *out_reader = bmp;
    return PEN_OK;
}

static void bmp_end(void *reader) {
    image_bmp *bmp = reader;
    pen_memory_free(bmp->starts);
    bmp->starts = NULL;
}

static void bmp_destroy_reader(void *reader) {
    image_bmp *bmp = reader;
    if (bmp == NULL) return;
    bmp_end(bmp);
    pen_image_room_clear(&bmp->row);
    pen_memory_free(bmp);
}

// ---- the head

static pen_status bmp_damaged(const image_bmp *bmp, const char *why) {
    return pen_error(PEN_CORRUPT, "'%s': the BMP picture cannot be decoded: %s", bmp->path, why);
}

static pen_status bmp_unsupported(const image_bmp *bmp, const char *what) {
    return pen_error(PEN_UNSUPPORTED,
                     "'%s': the BMP picture %s, which is not read; save it without compression",
                     bmp->path, what);
}

// Sizes, and how pixels are packed. A header that is shorter than another has nothing for the rest.
static pen_status bmp_read_header(image_bmp *bmp) {
    static const uint32_t known[] = {12, 16, 40, 52, 56, 64, 108, 124};
    const uint8_t *header = bmp->bytes + BMP_FILE_HEADER;
    size_t place = 0;
    bmp->header_bytes = bmp_number(header, 4);
    while (place < sizeof known / sizeof *known && known[place] != bmp->header_bytes)
        place++;
    if (place == sizeof known / sizeof *known) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s': the BMP picture has a header of %" PRIu32
                         " bytes, expected 12, 16, 40, 52, 56, 64, 108 or 124",
                         bmp->path, bmp->header_bytes);
    }
    if (bmp->size < BMP_FILE_HEADER + (size_t)bmp->header_bytes) {
        return bmp_damaged(bmp, "it is cut short");
    }
    const bool is_first = bmp->header_bytes == 12;
    const uint32_t height = bmp_number(header + (is_first ? 6 : 8), is_first ? 2 : 4);
    bmp->is_top_down = height > INT32_MAX;
    bmp->picture.width = bmp_number(header + 4, is_first ? 2 : 4);
    bmp->picture.height = bmp->is_top_down ? 0u - height : height;
    bmp->bits = bmp_number(header + (is_first ? 10 : 14), 2);
    bmp->packing = bmp->header_bytes < 40 ? BMP_PLAIN : bmp_number(header + 16, 4);
    return PEN_OK;
}

// Whether it is packed in a way that is read, with as many bits as that needs.
static pen_status bmp_check_packing(const image_bmp *bmp) {
    const uint32_t bits = bmp->bits;
    const bool is_os2 = bmp->header_bytes == 64;
    if (is_os2 && bmp->packing == 3) return bmp_unsupported(bmp, "is packed by Huffman's codes");
    if (is_os2 && bmp->packing == 4) return bmp_unsupported(bmp, "is packed as RLE24");
    if (bmp->packing == BMP_JPEG) return bmp_unsupported(bmp, "holds a JPEG");
    if (bmp->packing == BMP_PNG) return bmp_unsupported(bmp, "holds a PNG");
    if (bmp->packing > BMP_ALPHA_MASKS || (is_os2 && bmp->packing > 4)) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s': the BMP picture is packed in the way %" PRIu32
                         ", which is not read; save it without compression",
                         bmp->path, bmp->packing);
    }
    bool fits = bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
    if (bmp->packing == BMP_RLE8) fits = bits == 8;
    if (bmp->packing == BMP_RLE4) fits = bits == 4;
    if (bmp->packing == BMP_MASKS || bmp->packing == BMP_ALPHA_MASKS) fits = fits && bits >= 16;
    if (!fits) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s': the BMP picture has %" PRIu32
                         " bits a pixel, packed in the way %" PRIu32
                         "; expected 1, 4, 8, 16, 24 or 32, 8 in the way 1 (RLE8), 4 in the way 2 "
                         "(RLE4), 16 and more in the ways 3 and 6 (masks)",
                         bmp->path, bits, bmp->packing);
    }
    if (bmp->is_top_down && (bmp->packing == BMP_RLE8 || bmp->packing == BMP_RLE4)) {
        return bmp_unsupported(bmp, "is packed as RLE from the top down");
    }
    return PEN_OK;
}

// The colours of pixels that are places in it. All that there can be, if the header says none.
static pen_status bmp_read_palette(image_bmp *bmp) {
    const size_t colour_bytes = bmp->header_bytes == 12 ? 3 : 4;
    const size_t at = BMP_FILE_HEADER + bmp->header_bytes;
    const uint32_t said =
        bmp->header_bytes < 40 ? 0 : bmp_number(bmp->bytes + BMP_FILE_HEADER + 32, 4);
    bmp->palette_count = 1u << bmp->bits;
    if (said != 0 && said < bmp->palette_count) bmp->palette_count = said;
    if ((bmp->size - at) / colour_bytes < bmp->palette_count) {
        return bmp_damaged(bmp, "it is cut short within its palette");
    }
    for (uint32_t i = 0; i < bmp->palette_count; i++)
        memcpy(bmp->palette[i], bmp->bytes + at + i * colour_bytes, 3);
    const bool is_at_header = bmp->pixels_at == 0 || bmp->pixels_at == at;
    if (is_at_header) bmp->pixels_at = at + bmp->palette_count * colour_bytes;
    return PEN_OK;
}

// Bits of a mask must be neighbours, and within a pixel.
static pen_status bmp_read_mask(const image_bmp *bmp, uint32_t mask, bmp_channel *out_channel) {
    uint32_t shift = 0;
    while (shift < 31 && (mask >> shift & 1) == 0)
        shift++;
    const uint32_t maximum = mask >> shift;
    const bool is_within = bmp->bits == 32 || mask >> bmp->bits == 0;
    if (maximum == 0 || (maximum & (maximum + 1)) != 0 || !is_within) {
        return pen_error(PEN_UNSUPPORTED,
                         "'%s': the BMP picture has the mask 0x%08" PRIx32 " in pixels of %" PRIu32
                         " bits, expected neighbouring bits of these",
                         bmp->path, mask, bmp->bits);
    }
    *out_channel = (bmp_channel){shift, maximum};
    return PEN_OK;
}

// Where the colours of a pixel lie: five bits each of 16, else a byte each, or where masks say.
// Masks that are all empty say nothing.
static pen_status bmp_read_channels(image_bmp *bmp) {
    uint32_t masks[3] = {0};
    size_t at = BMP_FILE_HEADER + bmp->header_bytes;
    if (bmp->packing != BMP_PLAIN) {
        const bool is_behind = bmp->header_bytes == 40;
        const size_t count = bmp->packing == BMP_ALPHA_MASKS ? 4 : 3;
        if (bmp->size < BMP_MASKS_AT + count * 4) {
            return bmp_damaged(bmp, "it is cut short within its masks");
        }
        for (size_t i = 0; i < 3; i++)
            masks[i] = bmp_number(bmp->bytes + BMP_MASKS_AT + 4 * i, 4);
        if (is_behind) at = BMP_MASKS_AT + count * 4;
    }
    if ((masks[0] | masks[1] | masks[2]) == 0) {
        const uint32_t width = bmp->bits == 16 ? 5 : 8;
        for (uint32_t i = 0; i < 3; i++)
            masks[i] = ((1u << width) - 1) << (2 - i) * width;
    }
    for (size_t i = 0; i < 3; i++)
        PEN_TRY(bmp_read_mask(bmp, masks[i], &bmp->channels[i]));
    if (bmp->pixels_at == 0) bmp->pixels_at = at;
    return PEN_OK;
}

static bool bmp_is_packed(const image_bmp *bmp) {
    return bmp->packing == BMP_RLE8 || bmp->packing == BMP_RLE4;
}

// Of a picture that is not packed. Rows are filled up to whole words of four bytes.
static uint64_t bmp_row_bytes(const image_bmp *bmp) {
    return ((uint64_t)bmp->picture.width * bmp->bits + 31) / 32 * 4;
}

// Reads all that is before the pixels, and checks that those that are not packed are there.
static pen_status bmp_begin(void *reader, const uint8_t *bytes, size_t size, const char *path,
                            pen_image_size *out_size) {
    image_bmp *bmp = reader;
    bmp->bytes = bytes;
    bmp->size = size;
    bmp->path = path;
    bmp->pixels_at = bmp_number(bytes + 10, 4);
    PEN_TRY(bmp_read_header(bmp));
    PEN_TRY(bmp_check_packing(bmp));
    if (bmp->pixels_at != 0 && bmp->pixels_at < BMP_FILE_HEADER + (size_t)bmp->header_bytes) {
        return bmp_damaged(bmp, "its pixels are said to begin within its header");
    }
    PEN_TRY(bmp->bits <= 8 ? bmp_read_palette(bmp) : bmp_read_channels(bmp));
    if (bmp->pixels_at > size)
        return bmp_damaged(bmp, "its pixels are said to begin behind its end");
    *out_size = bmp->picture;
    if (bmp_is_packed(bmp) || bmp_row_bytes(bmp) == 0) return PEN_OK;
    if ((size - bmp->pixels_at) / bmp_row_bytes(bmp) >= bmp->picture.height) return PEN_OK;
    return pen_error(PEN_CORRUPT,
                     "'%s': the BMP picture announces %" PRIu32 " x %" PRIu32
                     " pixels, more than %zu bytes can hold",
                     path, bmp->picture.width, bmp->picture.height, size);
}

// ---- rows that are not packed

static uint8_t bmp_scale(uint32_t pixel, bmp_channel channel) {
    const uint32_t value = pixel >> channel.shift & channel.maximum;
    if (channel.maximum == 255) return (uint8_t)value;
    return (uint8_t)((uint64_t)value * 255 / channel.maximum);
}

static void bmp_turn_channels(const image_bmp *bmp, const uint8_t *from, uint8_t *row) {
    const size_t bytes = bmp->bits / 8;
    for (size_t x = 0; x < bmp->picture.width; x++) {
        const uint32_t pixel = bmp_number(from + x * bytes, bytes);
        for (size_t c = 0; c < 3; c++)
            row[3 * x + c] = bmp_scale(pixel, bmp->channels[c]);
    }
}

// Places in the palette become colours.
static pen_status bmp_turn_places(const image_bmp *bmp, const uint8_t *places, uint8_t *row) {
    for (size_t x = 0; x < bmp->picture.width; x++) {
        if (places[x] >= bmp->palette_count) {
            return pen_error(PEN_CORRUPT,
                             "'%s': the BMP picture has a pixel of colour %d (from 0), its palette "
                             "has %" PRIu32 " colours",
                             bmp->path, places[x], bmp->palette_count);
        }
        const uint8_t *colour = bmp->palette[places[x]];
        for (size_t c = 0; c < 3; c++)
            row[3 * x + c] = colour[2 - c];
    }
    return PEN_OK;
}

// The leftmost pixel is in the highest bits.
static void bmp_spread_bits(const image_bmp *bmp, const uint8_t *from, uint8_t *places) {
    const size_t in_byte = 8 / bmp->bits;
    for (size_t x = 0; x < bmp->picture.width; x++) {
        const uint32_t shift = (uint32_t)(in_byte - 1 - x % in_byte) * bmp->bits;
        places[x] = (uint8_t)((uint32_t)from[x / in_byte] >> shift & ((1u << bmp->bits) - 1));
    }
}

static pen_status bmp_read_rows(const image_bmp *bmp, const pen_image_taker *taker) {
    const uint32_t height = bmp->picture.height;
    const size_t row_bytes = (size_t)bmp_row_bytes(bmp);
    uint8_t *spread = bmp->row.bytes + (size_t)bmp->picture.width * 3;
    for (uint32_t y = 0; y < height; y++) {
        const size_t line = bmp->is_top_down ? y : height - 1 - y;
        const uint8_t *from = bmp->bytes + bmp->pixels_at + line * row_bytes;
        if (bmp->bits > 8) {
            bmp_turn_channels(bmp, from, bmp->row.bytes);
        } else {
            if (bmp->bits < 8) bmp_spread_bits(bmp, from, spread);
            PEN_TRY(bmp_turn_places(bmp, bmp->bits < 8 ? spread : from, bmp->row.bytes));
        }
        taker->row(taker->context, bmp->row.bytes);
    }
    return PEN_OK;
}

// ---- rows that are packed

// What the packed bytes say at one place.
typedef struct bmp_step {
    uint32_t count;    // pixels to the right that have colours
    const uint8_t *of; // theirs: in a run one byte for all, else one after another
    bool is_run;
    bool is_end;        // of the picture
    uint32_t right, up; // then so far on
    bool is_new_line;   // at the left; up is 1
} bmp_step;

// The step at `at`, which moves behind it. False if the file ends within it.
static bool bmp_take_step(const image_bmp *bmp, size_t *at, bmp_step *out_step) {
    const size_t left = bmp->size - *at;
    const uint8_t *bytes = bmp->bytes + *at;
    *out_step = (bmp_step){0};
    if (left < 2) return false;
    size_t length = 2;
    if (bytes[0] > 0) {
        *out_step = (bmp_step){.count = bytes[0], .of = bytes + 1, .is_run = true};
    } else if (bytes[1] == 0) {
        *out_step = (bmp_step){.is_new_line = true, .up = 1};
    } else if (bytes[1] == 1) {
        *out_step = (bmp_step){.is_end = true};
    } else if (bytes[1] == 2) {
        length = 4;
        if (left < length) return false;
        *out_step = (bmp_step){.right = bytes[2], .up = bytes[3]};
    } else {
        const size_t data = bmp->packing == BMP_RLE8 ? bytes[1] : (bytes[1] + 1u) / 2;
        if (left < 2 + data) return false;
        *out_step = (bmp_step){.count = bytes[1], .of = bytes + 2};
        length += data + data % 2; // even; the last filler may lack
        if (length > left) length = left;
    }
    *at += length;
    return true;
}

// Notes where each row begins, as rows come from the bottom up, and are handed on from the top
// down.
static pen_status bmp_find_rows(image_bmp *bmp) {
    const uint32_t width = bmp->picture.width, height = bmp->picture.height;
    size_t at = bmp->pixels_at;
    uint32_t x = 0, y = 0;
    while (y < height && (y + 1 < height || x < width)) {
        const size_t from = at;
        bmp_step step;
        if (!bmp_take_step(bmp, &at, &step)) return bmp_damaged(bmp, "it is cut short");
        if (step.is_end) break;
        if (step.count > 0 && bmp->starts[y].at == 0) {
            bmp->starts[y] = (bmp_row_start){(uint32_t)from, x};
        }
        x = step.is_new_line ? 0 : x + step.count + step.right;
        if (x > width) x = width; // pixels beyond the end of a row are none
        y += step.up;
        if (y > height) return bmp_damaged(bmp, "its packed rows lead out of it");
    }
    return PEN_OK;
}

static uint8_t bmp_step_place(const image_bmp *bmp, const bmp_step *step, uint32_t i) {
    if (bmp->packing == BMP_RLE8) return step->of[step->is_run ? 0 : i];
    const uint8_t pair = step->of[step->is_run ? 0 : i / 2];
    return i % 2 == 0 ? pair >> 4 : pair & 15;
}

// The row that begins there, up to where the bytes go on to another. They were walked through
// before.
static void bmp_unpack_row(const image_bmp *bmp, bmp_row_start start, uint8_t *places) {
    const uint32_t width = bmp->picture.width;
    size_t at = start.at;
    uint32_t x = start.x;
    bmp_step step;
    memset(places, 0, width);
    if (at == 0) return;
    while (x < width && bmp_take_step(bmp, &at, &step) && !step.is_end) {
        for (uint32_t i = 0; i < step.count && x < width; i++)
            places[x++] = bmp_step_place(bmp, &step, i);
        if (step.up > 0) return;
        x += step.right;
    }
}

static pen_status bmp_read_packed(image_bmp *bmp, const pen_image_taker *taker) {
    const uint32_t height = bmp->picture.height;
    uint8_t *places = bmp->row.bytes + (size_t)bmp->picture.width * 3;
    bmp->starts = pen_memory_allocate(height, sizeof *bmp->starts);
    if (bmp->starts == NULL) return pen_error_out_of_memory();
    PEN_TRY(bmp_find_rows(bmp));
    for (uint32_t y = 0; y < height; y++) {
        bmp_unpack_row(bmp, bmp->starts[height - 1 - y], places);
        PEN_TRY(bmp_turn_places(bmp, places, bmp->row.bytes));
        taker->row(taker->context, bmp->row.bytes);
    }
    return PEN_OK;
}

static pen_status bmp_read(void *reader, const pen_image_taker *taker) {
    image_bmp *bmp = reader;
    PEN_TRY(pen_image_room_reserve(&bmp->row, (size_t)bmp->picture.width * 4));
    return bmp_is_packed(bmp) ? bmp_read_packed(bmp, taker) : bmp_read_rows(bmp, taker);
}

const pen_image_format pen_image_format_bmp = {
    .name = "BMP",
    .endings = bmp_endings,
    .pixels_of_few_bytes = PEN_IMAGE_BLANK_PIXELS,
    .pixels_per_byte = BMP_PIXELS_PER_BYTE,
    .is = bmp_is,
    .create = bmp_create_reader,
    .destroy = bmp_destroy_reader,
    .begin = bmp_begin,
    .read = bmp_read,
    .end = bmp_end,
};
