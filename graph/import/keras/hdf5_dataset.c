#include "graph/import/keras/hdf5_dataset.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/integer.h"
#include "base/limits.h"
#include "graph/import/keras/hdf5_stream.h"

// HDF5 describes floats by their bits. It converts 32 and 64 bits on reading; those of 16 are taken
// as they lie.
static pen_element_type dataset_float_element(const pen_hdf5_library *h5, hid_t type,
                                              hid_t *out_memory) {
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    if (h5->H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0) {
        return PEN_ELEMENT_UNKNOWN;
    }
    const size_t size = h5->H5Tget_size(type);
    if (size == 4 && mantissa_bits == 23 && exponent_bits == 8) {
        *out_memory = *h5->H5T_IEEE_F32LE_g;
        return PEN_FLOAT32;
    }
    if (size == 8 && mantissa_bits == 52 && exponent_bits == 11) {
        *out_memory = *h5->H5T_IEEE_F64LE_g;
        return PEN_FLOAT64;
    }
    *out_memory = type; // as it lies in the file
    if (size != 2 || h5->H5Tget_order(type) != H5T_ORDER_LE || sign != 15)
        return PEN_ELEMENT_UNKNOWN;
    if (mantissa_bits == 10 && exponent_bits == 5) return PEN_FLOAT16;
    if (mantissa_bits == 7 && exponent_bits == 8) return PEN_BFLOAT16;
    return PEN_ELEMENT_UNKNOWN;
}

// HDF5 converts to little-endian on reading.
static pen_element_type dataset_integer_element(const pen_hdf5_library *h5, hid_t type,
                                                hid_t *out_memory) {
    const bool is_signed = h5->H5Tget_sign(type) == H5T_SGN_2;
    switch (h5->H5Tget_size(type)) {
    case 1:
        *out_memory = is_signed ? *h5->H5T_STD_I8LE_g : *h5->H5T_STD_U8LE_g;
        return is_signed ? PEN_INT8 : PEN_UINT8;
    case 2:
        *out_memory = is_signed ? *h5->H5T_STD_I16LE_g : *h5->H5T_STD_U16LE_g;
        return is_signed ? PEN_INT16 : PEN_UINT16;
    case 4:
        *out_memory = is_signed ? *h5->H5T_STD_I32LE_g : *h5->H5T_STD_U32LE_g;
        return is_signed ? PEN_INT32 : PEN_UINT32;
    case 8:
        *out_memory = is_signed ? *h5->H5T_STD_I64LE_g : *h5->H5T_STD_U64LE_g;
        return is_signed ? PEN_INT64 : PEN_UINT64;
    default:
        return PEN_ELEMENT_UNKNOWN;
    }
}

static pen_status dataset_element(pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    const H5T_class_t class = h5->H5Tget_class(dataset->type);
    pen_element_type element = PEN_ELEMENT_UNKNOWN;
    if (class == H5T_FLOAT) element = dataset_float_element(h5, dataset->type, &dataset->memory);
    if (class == H5T_INTEGER)
        element = dataset_integer_element(h5, dataset->type, &dataset->memory);
    dataset->tensor.element = element;
    if (element != PEN_ELEMENT_UNKNOWN) return PEN_OK;
    return pen_error(PEN_UNSUPPORTED,
                     "%s: '%.200s' has elements that are neither numbers of 1, 2, 4 or 8 bytes nor "
                     "floating-point numbers of IEEE 754",
                     dataset->reader->name, dataset->path);
}

static pen_status dataset_shape(pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    hsize_t dims[PEN_RANK_LIMIT] = {0};
    const int rank = h5->H5Sget_simple_extent_ndims(dataset->space);
    if (rank < 0) return pen_hdf5_reader_error(dataset->reader, dataset->path);
    if (rank > PEN_RANK_LIMIT) {
        return pen_error(PEN_INVALID_INPUT, "%s: '%.200s' has %d dimensions, at most %d can be",
                         dataset->reader->name, dataset->path, rank, PEN_RANK_LIMIT);
    }
    if (h5->H5Sget_simple_extent_dims(dataset->space, dims, NULL) < 0) {
        return pen_hdf5_reader_error(dataset->reader, dataset->path);
    }
    dataset->tensor.shape.rank = (uint32_t)rank;
    for (int i = 0; i < rank; i++) {
        dataset->tensor.shape.dims[i] = dims[i] > INT64_MAX ? -1 : (int64_t)dims[i];
    }
    return pen_status_add_context(pen_tensor_type_check(&dataset->tensor), "in '%.200s' of %s",
                                  dataset->path, dataset->reader->name);
}

static pen_status dataset_refuse_storage(const pen_hdf5_dataset *dataset, const char *what) {
    return pen_error(PEN_UNSUPPORTED,
                     "%s: '%.200s' %s; possible are contiguous, compact and chunked datasets, as "
                     "they are or with deflate, shuffle, fletcher32 and szip",
                     dataset->reader->name, dataset->path, what);
}

static pen_status dataset_check_filters(const pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    const int count = h5->H5Pget_nfilters(dataset->creation);
    if (count < 0) return pen_hdf5_reader_error(dataset->reader, dataset->path);
    for (int i = 0; i < count; i++) {
        unsigned flags = 0;
        size_t value_count = 0;
        const H5Z_filter_t filter = h5->H5Pget_filter2(dataset->creation, (unsigned)i, &flags,
                                                       &value_count, NULL, 0, NULL, NULL);
        if (filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_SHUFFLE ||
            filter == H5Z_FILTER_FLETCHER32 || filter == H5Z_FILTER_SZIP) {
            continue;
        }
        return dataset_refuse_storage(dataset, "passes through a filter that is not known");
    }
    return PEN_OK;
}

// Chunks are what libhdf5 allocates while it reads.
static pen_status dataset_check_chunks(const pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    hsize_t chunk[PEN_RANK_LIMIT] = {0};
    uint64_t bytes = pen_element_bytes(dataset->tensor.element);
    const int rank = h5->H5Pget_chunk(dataset->creation, PEN_RANK_LIMIT, chunk);
    if (rank < 0 || rank > PEN_RANK_LIMIT)
        return pen_hdf5_reader_error(dataset->reader, dataset->path);
    for (int i = 0; i < rank; i++) {
        if (pen_u64_mul(bytes, chunk[i], &bytes) && bytes <= PEN_HDF5_CHUNK_BYTES_LIMIT) continue;
        return dataset_refuse_storage(dataset, "has very large chunks");
    }
    return dataset_check_filters(dataset);
}

// Where the contents lie in the file, if in one piece and as they are.
static uint64_t dataset_offset(const pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    if (h5->H5Pget_layout(dataset->creation) != H5D_CONTIGUOUS ||
        h5->H5Tequal(dataset->type, dataset->memory) <= 0) {
        return PEN_HDF5_STREAM_ON_REQUEST;
    }
    const haddr_t offset = h5->H5Dget_offset(dataset->id);
    (void)h5->H5Eclear2(H5E_DEFAULT);
    const bool is_within = offset != HADDR_UNDEF && offset <= dataset->reader->length &&
                           dataset->bytes <= dataset->reader->length - offset;
    return is_within ? offset : PEN_HDF5_STREAM_ON_REQUEST;
}

static pen_status dataset_check_storage(const pen_hdf5_dataset *dataset, uint64_t bytes) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    const H5D_layout_t layout = h5->H5Pget_layout(dataset->creation);
    if (layout == H5D_VIRTUAL) return dataset_refuse_storage(dataset, "is put together of others");
    if (h5->H5Pget_external_count(dataset->creation) != 0) {
        return dataset_refuse_storage(dataset, "is in other files");
    }
    if (layout == H5D_CHUNKED) PEN_TRY(dataset_check_chunks(dataset));
    if (bytes / PEN_HDF5_STREAM_PACKING_LIMIT > dataset->reader->length) {
        return pen_error(PEN_CORRUPT,
                         "%s: '%.200s' has %" PRIu64
                         " bytes, more than a file of %zu bytes can hold",
                         dataset->reader->name, dataset->path, bytes, dataset->reader->length);
    }
    return PEN_OK;
}

// Whole chunks, so that none is unpacked twice.
static uint64_t dataset_rows_at_once(const pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    hsize_t chunk[PEN_RANK_LIMIT] = {1};
    uint64_t rows = dataset->row_bytes == 0 ? dataset->row_count
                                            : PEN_HDF5_STREAM_PIECE_LIMIT / dataset->row_bytes;
    if (h5->H5Pget_layout(dataset->creation) == H5D_CHUNKED) {
        (void)h5->H5Pget_chunk(dataset->creation, PEN_RANK_LIMIT, chunk); // was read before
    }
    const uint64_t least = chunk[0] > 0 ? chunk[0] : 1;
    rows = rows < least ? least : rows / least * least;
    return pen_min_u64(rows, dataset->row_count);
}

static pen_status dataset_describe(pen_hdf5_dataset *dataset) {
    PEN_TRY(dataset_element(dataset));
    PEN_TRY(dataset_shape(dataset));
    const pen_shape *shape = &dataset->tensor.shape;
    dataset->bytes = pen_tensor_type_bytes(&dataset->tensor);
    PEN_TRY(dataset_check_storage(dataset, dataset->bytes));
    dataset->row_count = shape->rank > 0 ? (uint64_t)shape->dims[0] : 1;
    dataset->row_bytes = dataset->row_count > 0 ? dataset->bytes / dataset->row_count : 0;
    dataset->rows_at_once = dataset_rows_at_once(dataset);
    dataset->offset = dataset_offset(dataset);
    return PEN_OK;
}

pen_status pen_hdf5_dataset_open(const pen_hdf5_reader *reader, const char *path,
                                 pen_hdf5_dataset *out_dataset) {
    const pen_hdf5_library *h5 = reader->h5;
    *out_dataset =
        (pen_hdf5_dataset){.reader = reader, .path = path, .type = -1, .space = -1, .creation = -1};
    out_dataset->id = h5->H5Dopen2(reader->file, path, H5P_DEFAULT);
    if (out_dataset->id < 0) return pen_hdf5_reader_error(reader, path);
    out_dataset->type = h5->H5Dget_type(out_dataset->id);
    out_dataset->space = h5->H5Dget_space(out_dataset->id);
    out_dataset->creation = h5->H5Dget_create_plist(out_dataset->id);
    if (out_dataset->type < 0 || out_dataset->space < 0 || out_dataset->creation < 0) {
        return pen_hdf5_reader_error(reader, path);
    }
    return dataset_describe(out_dataset);
}

void pen_hdf5_dataset_close(pen_hdf5_dataset *dataset) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    if (dataset->type >= 0) (void)h5->H5Tclose(dataset->type);
    if (dataset->space >= 0) (void)h5->H5Sclose(dataset->space);
    if (dataset->creation >= 0) (void)h5->H5Pclose(dataset->creation);
    if (dataset->id >= 0) (void)h5->H5Dclose(dataset->id);
    (void)h5->H5Eclear2(H5E_DEFAULT);
}

// Rows of a large dataset are read in pieces, so that this process never holds all of it.
pen_status pen_hdf5_dataset_read(const pen_hdf5_dataset *dataset, uint64_t first, uint64_t count,
                                 void *rows) {
    const pen_hdf5_library *h5 = dataset->reader->h5;
    hsize_t start[PEN_RANK_LIMIT] = {first};
    hsize_t extent[PEN_RANK_LIMIT] = {0};
    herr_t result = -1;
    if (count == dataset->row_count) {
        result = h5->H5Dread(dataset->id, dataset->memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows);
        return result < 0 ? pen_hdf5_reader_error(dataset->reader, dataset->path) : PEN_OK;
    }
    const uint32_t rank = dataset->tensor.shape.rank;
    for (uint32_t i = 0; i < rank; i++)
        extent[i] = i == 0 ? count : (hsize_t)dataset->tensor.shape.dims[i];
    const hid_t space = h5->H5Screate_simple((int)rank, extent, NULL);
    if (space >= 0 &&
        h5->H5Sselect_hyperslab(dataset->space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0) {
        result =
            h5->H5Dread(dataset->id, dataset->memory, space, dataset->space, H5P_DEFAULT, rows);
    }
    if (space >= 0) (void)h5->H5Sclose(space);
    return result < 0 ? pen_hdf5_reader_error(dataset->reader, dataset->path) : PEN_OK;
}
