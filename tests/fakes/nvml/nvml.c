/*
 * A double of libnvidia-ml.so.1 for tests: what it says is in a text file, named by SEVENHOP_FAKE_NVML and looked at again
 * at each call, so that a test changes a GPU by replacing the file.
 *
 *     driver 550.54.15
 *     gpu 0 uuid=GPU-… name=NVIDIA_H100_80GB_HBM3 pci=00000000:3B:00.0 used=100 total=81559 util=40 power=300000 temp=50
 *           throttle=0 ecc_u=0 ecc_c=2 remap=0,0 links=18/18 procs=1 gpm=45.5,12.5 minor=0      (on one line)
 *     gpu 1 … lost=1       every call fails with GPU_IS_LOST          hang=1   never returns
 *           … slow=50      milliseconds for each call                 mig=1    MIG is on
 *     mig 0 2 uuid=MIG-… profile=1g.10gb gi=9 used=10 total=9856 procs=1
 *     event 7 0 8 79       number, gpu, type (8 is an XID), data: told to whoever waits once
 *
 * What a GPU's line does not name is NOT_SUPPORTED.  With -DOLD the functions that came after R470 are left out.
 * Signatures and numbers: https://docs.nvidia.com/deploy/nvml-api.
 */
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int ret_t;
enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, SHORT = 7, TIMED_OUT = 10, LOST = 15, UNKNOWN = 999 };
#define GPUS 16
#define SLOTS 8
#define WIDE 4096

typedef struct { int gpu, slot; } device_t;
static device_t devices[GPUS * (SLOTS + 1)];

static device_t *device(int gpu, int slot) {
    device_t *found = &devices[gpu * (SLOTS + 1) + slot + 1];
    found->gpu = gpu;
    found->slot = slot;
    return found;
}

/* Of each thread, so that none waits for another: what the file held when it was last read. */
static __thread char *text;
static __thread struct stat as_read;

static int is_as_read(const struct stat *now) {
    return now->st_ino == as_read.st_ino && now->st_size == as_read.st_size && now->st_mtim.tv_sec == as_read.st_mtim.tv_sec
        && now->st_mtim.tv_nsec == as_read.st_mtim.tv_nsec && now->st_ctim.tv_sec == as_read.st_ctim.tv_sec
        && now->st_ctim.tv_nsec == as_read.st_ctim.tv_nsec;
}

/* The file's text as it is now, read again only if it was replaced: a bench of the agent counts what we use too. */
static const char *current(void) {
    const char *path = getenv("SEVENHOP_FAKE_NVML");
    FILE *file;
    struct stat now;
    size_t size;
    if (!path || stat(path, &now)) return NULL;
    if (text && is_as_read(&now)) return text;
    free(text);
    text = NULL;
    if (!(file = fopen(path, "r"))) return NULL;
    if (!fstat(fileno(file), &as_read) && (text = malloc((size_t)as_read.st_size + 1))) {
        size = fread(text, 1, (size_t)as_read.st_size, file);
        text[size] = 0;
    }
    fclose(file);
    return text;
}

/* Copies one line, with its end; returns where the next begins, NULL if there was none. */
static const char *next_line(const char *at, char *line) {
    size_t n;
    if (!at || !*at) return NULL;
    n = strcspn(at, "\n");
    n += at[n] == '\n';
    snprintf(line, WIDE, "%.*s", (int)n, at);
    return at + n;
}

/* The line that begins with `head`, in `line`; 0 if there is none. */
static int find(const char *head, char *line) {
    const char *at = current();
    while ((at = next_line(at, line)))
        if (!strncmp(line, head, strlen(head))) return 1;
    return 0;
}

static int line_of(const device_t *d, char *line) {
    char head[32];
    if (d->slot < 0) snprintf(head, sizeof head, "gpu %d ", d->gpu);
    else snprintf(head, sizeof head, "mig %d %d ", d->gpu, d->slot);
    return find(head, line);
}

/* The value of `key` in `line`, up to the next space. */
static int value(const char *line, const char *key, char *out, size_t size) {
    char wanted[40];
    const char *at;
    size_t n = 0;
    snprintf(wanted, sizeof wanted, " %s=", key);
    if (!(at = strstr(line, wanted))) return 0;
    for (at += strlen(wanted); *at && *at != ' ' && *at != '\n' && n + 1 < size; at++) out[n++] = *at;
    out[n] = 0;
    return 1;
}

static int number(const char *line, const char *key, long long *out) {
    char text[64];
    if (!value(line, key, text, sizeof text)) return 0;
    *out = atoll(text);
    return 1;
}

/* Every call on a GPU passes here: it may hang, be slow, or be lost. */
static ret_t enter(const device_t *d, char *line) {
    long long n;
    char gpu[WIDE];
    if (!d) return INVALID;
    if (!line_of(device(d->gpu, -1), gpu)) return NOT_FOUND;
    if (number(gpu, "hang", &n) && n) for (;;) sleep(3600);
    if (number(gpu, "slow", &n)) usleep((useconds_t)n * 1000);
    if (number(gpu, "lost", &n) && n) return LOST;
    return line_of(d, line) ? OK : NOT_FOUND;
}

static ret_t get_number(const device_t *d, const char *key, long long *out) {
    char line[WIDE];
    ret_t r = enter(d, line);
    if (r) return r;
    return number(line, key, out) ? OK : UNSUPPORTED;
}

static ret_t get_text(const device_t *d, const char *key, char *out, unsigned size) {
    char line[WIDE];
    ret_t r = enter(d, line);
    if (r) return r;
    return value(line, key, out, size) ? OK : UNSUPPORTED;
}

ret_t nvmlInitWithFlags(unsigned flags) {
    char line[WIDE];
    (void)flags;
    return find("driver ", line) ? OK : 9; /* DRIVER_NOT_LOADED */
}
ret_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
ret_t nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(ret_t r) {
    switch (r) {
    case OK: return "Success";
    case INVALID: return "Invalid Argument";
    case UNSUPPORTED: return "Not Supported";
    case NOT_FOUND: return "Not Found";
    case 9: return "Driver Not Loaded";
    case TIMED_OUT: return "Timeout";
    case LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

ret_t nvmlSystemGetDriverVersion(char *out, unsigned size) {
    char line[WIDE];
    if (!find("driver ", line)) return 9;
    line[strcspn(line, "\n")] = 0;
    snprintf(out, size, "%s", line + 7);
    return OK;
}

ret_t nvmlDeviceGetCount_v2(unsigned *count) {
    char line[WIDE];
    long long n;
    if (!find("driver ", line)) return 9;
    for (*count = 0; *count < GPUS; ++*count)
        if (!line_of(device((int)*count, -1), line)) break;
    if (find("driver ", line) && number(line, "count", &n)) *count = (unsigned)n;
    return OK;
}

ret_t nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **out) {
    char line[WIDE];
    if (index >= GPUS || !line_of(device((int)index, -1), line)) return INVALID;
    *out = device((int)index, -1);
    return enter(*out, line);
}

ret_t nvmlDeviceGetUUID(device_t *d, char *out, unsigned size) { return get_text(d, "uuid", out, size); }

ret_t nvmlDeviceGetName(device_t *d, char *out, unsigned size) {
    char name[96] = "", profile[32];
    ret_t r = get_text(device(d->gpu, -1), "name", name, sizeof name);
    if (r) return r;
    if (d->slot >= 0 && !(r = get_text(d, "profile", profile, sizeof profile)))
        snprintf(out, size, "%s MIG %s", name, profile);
    else snprintf(out, size, "%s", name);
    for (; *out; out++) if (*out == '_') *out = ' ';
    return r;
}

ret_t nvmlDeviceGetMinorNumber(device_t *d, unsigned *out) {
    long long n;
    ret_t r = get_number(d, "minor", &n);
    if (!r) *out = (unsigned)n;
    return r;
}

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char bus_id[32];
} pci_t;
ret_t nvmlDeviceGetPciInfo_v3(device_t *d, pci_t *out) {
    memset(out, 0, sizeof *out);
    return get_text(d, "pci", out->bus_id, sizeof out->bus_id);
}

typedef struct { unsigned long long total, free, used; } memory_t;
ret_t nvmlDeviceGetMemoryInfo(device_t *d, memory_t *out) {
    long long used, total;
    ret_t r = get_number(d, "used", &used);
    if (r || (r = get_number(d, "total", &total))) return r;
    out->used = (unsigned long long)used << 20;
    out->total = (unsigned long long)total << 20;
    out->free = out->total - out->used;
    return OK;
}

typedef struct { unsigned gpu, memory; } rates_t;
ret_t nvmlDeviceGetUtilizationRates(device_t *d, rates_t *out) {
    long long n;
    ret_t r = get_number(d, "util", &n);
    if (!r) out->gpu = (unsigned)n, out->memory = 0;
    return r;
}

#define PLAIN(function, key, type)                        \
    ret_t function(device_t *d, type *out) {              \
        long long n;                                      \
        ret_t r = get_number(d, key, &n);                 \
        if (!r) *out = (type)n;                           \
        return r;                                         \
    }
PLAIN(nvmlDeviceGetPowerUsage, "power", unsigned)
PLAIN(nvmlDeviceGetCurrentClocksThrottleReasons, "throttle", unsigned long long)
PLAIN(nvmlDeviceGetRetiredPagesPendingStatus, "retired", unsigned)

ret_t nvmlDeviceGetTemperature(device_t *d, int sensor, unsigned *out) {
    long long n;
    ret_t r = get_number(d, "temp", &n);
    (void)sensor;
    if (!r) *out = (unsigned)n;
    return r;
}

ret_t nvmlDeviceGetTotalEccErrors(device_t *d, int kind, int counter, unsigned long long *out) {
    long long n;
    ret_t r = get_number(d, kind == 1 ? "ecc_u" : "ecc_c", &n);
    (void)counter;
    if (!r) *out = (unsigned long long)n;
    return r;
}

ret_t nvmlDeviceGetNvLinkState(device_t *d, unsigned link, unsigned *out) {
    char text[32];
    unsigned up, all;
    ret_t r = get_text(d, "links", text, sizeof text);
    if (r) return r;
    if (sscanf(text, "%u/%u", &up, &all) != 2 || link >= all) return INVALID;
    *out = link < up;
    return OK;
}

typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process_t;
static ret_t processes(device_t *d, unsigned *count, process_t *out) {
    long long n;
    unsigned room = *count, i;
    ret_t r = get_number(d, "procs", &n);
    if (r) return r;
    *count = (unsigned)n;
    if (!n) return OK;
    if (!out || room < n) return SHORT;
    for (i = 0; i < n; i++) out[i] = (process_t){1000 + i, 1 << 20, 0xFFFFFFFF, 0xFFFFFFFF};
    return OK;
}
ret_t nvmlDeviceGetComputeRunningProcesses_v2(device_t *d, unsigned *n, process_t *p) { return processes(d, n, p); }

typedef struct { device_t *device; unsigned long long type, data; unsigned gi, ci; } event_t;
typedef struct { unsigned gpus; long long told; } set_t;

static long long next_event(set_t *set, event_t *out) {
    const char *at = current();
    char line[WIDE];
    long long serial = 0, last = 0;
    int gpu;
    unsigned long long type, data;
    while ((at = next_line(at, line))) {
        if (sscanf(line, "event %lld %d %llu %llu", &serial, &gpu, &type, &data) != 4) continue;
        last = serial > last ? serial : last;
        if (!out || serial <= set->told || !(set->gpus >> gpu & 1)) continue;
        *out = (event_t){device(gpu, -1), type, data, 0xFFFFFFFF, 0xFFFFFFFF};
        return set->told = serial;
    }
    return out ? 0 : last;
}

ret_t nvmlEventSetCreate(set_t **out) {
    static set_t sets[64];
    static int used;
    set_t *set = &sets[used++ % 64];
    set->gpus = 0;
    set->told = next_event(set, NULL);
    *out = set;
    return OK;
}
ret_t nvmlEventSetFree(set_t *set) { (void)set; return OK; }
ret_t nvmlDeviceGetSupportedEventTypes(device_t *d, unsigned long long *out) {
    char line[WIDE];
    *out = 0x1FF;
    return enter(d, line);
}
ret_t nvmlDeviceRegisterEvents(device_t *d, unsigned long long types, set_t *set) {
    char line[WIDE];
    ret_t r = enter(d, line);
    (void)types;
    if (!r) set->gpus |= 1u << d->gpu;
    return r;
}
/* Tells when the file is replaced; -1 if that cannot be told. */
static int watch(void) {
    const char *path = getenv("SEVENHOP_FAKE_NVML");
    char folder[WIDE];
    int fd = inotify_init1(IN_CLOEXEC);
    snprintf(folder, sizeof folder, "%s", path ? path : "");
    if (fd >= 0 && inotify_add_watch(fd, dirname(folder), IN_MOVED_TO) >= 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

/* Sleeps like the driver's: who waits costs nothing. */
ret_t nvmlEventSetWait_v2(set_t *set, event_t *out, unsigned timeout_ms) {
    unsigned waited;
    char line[WIDE];
    long long n;
    int gpu, is_replaced;
    for (waited = 0; waited <= timeout_ms;) {
        struct pollfd changes = {watch(), POLLIN, 0}; /* before the look, so that nothing is missed in between */
        if (next_event(set, out)) {
            if (changes.fd >= 0) close(changes.fd);
            return OK;
        }
        for (gpu = 0; gpu < GPUS; gpu++)
            if (set->gpus >> gpu & 1 && line_of(device(gpu, -1), line) && number(line, "lost", &n) && n) {
                if (changes.fd >= 0) close(changes.fd);
                return LOST;
            }
        is_replaced = poll(&changes, 1, changes.fd < 0 ? 20 : (int)timeout_ms) > 0;
        if (changes.fd >= 0) close(changes.fd);
        waited += is_replaced || changes.fd < 0 ? 20 : timeout_ms + 1;
    }
    return TIMED_OUT;
}

#ifndef OLD /* ------------------------------------------------------------------------------ after R470 */

PLAIN(nvmlDeviceGetCurrentClocksEventReasons, "throttle", unsigned long long)
ret_t nvmlDeviceGetComputeRunningProcesses_v3(device_t *d, unsigned *n, process_t *p) { return processes(d, n, p); }

ret_t nvmlDeviceGetRemappedRows(device_t *d, unsigned *corr, unsigned *unc, unsigned *pending, unsigned *failed) {
    char text[32];
    ret_t r = get_text(d, "remap", text, sizeof text);
    *corr = *unc = 0;
    if (!r && sscanf(text, "%u,%u", pending, failed) != 2) r = UNKNOWN;
    return r;
}

ret_t nvmlDeviceGetMigMode(device_t *d, unsigned *now, unsigned *pending) {
    long long n;
    ret_t r = get_number(d, "mig", &n);
    if (!r) *now = *pending = (unsigned)n;
    return r;
}
ret_t nvmlDeviceGetMaxMigDeviceCount(device_t *d, unsigned *out) { (void)d; *out = SLOTS; return OK; }
ret_t nvmlDeviceGetMigDeviceHandleByIndex(device_t *d, unsigned slot, device_t **out) {
    char line[WIDE];
    if (slot >= SLOTS) return INVALID;
    *out = device(d->gpu, (int)slot);
    return enter(*out, line);
}
ret_t nvmlDeviceGetGpuInstanceId(device_t *d, unsigned *out) {
    long long n;
    ret_t r = get_number(d, "gi", &n);
    if (!r) *out = (unsigned)n;
    return r;
}

typedef struct { unsigned version, supported; } support_t;
ret_t nvmlGpmQueryDeviceSupport(device_t *d, support_t *out) {
    char text[32];
    ret_t r = get_text(d, "gpm", text, sizeof text);
    if (r && r != UNSUPPORTED) return r;
    out->supported = !r;
    return OK;
}
typedef struct { double sm, occupancy; } gpm_t;
ret_t nvmlGpmSampleAlloc(gpm_t **out) { return (*out = calloc(1, sizeof **out)) ? OK : UNKNOWN; }
ret_t nvmlGpmSampleFree(gpm_t *sample) { free(sample); return OK; }
ret_t nvmlGpmSampleGet(device_t *d, gpm_t *sample) {
    char text[32];
    ret_t r = get_text(d, "gpm", text, sizeof text);
    if (!r && sscanf(text, "%lf,%lf", &sample->sm, &sample->occupancy) != 2) r = UNKNOWN;
    return r;
}
ret_t nvmlGpmMigSampleGet(device_t *d, unsigned gi, gpm_t *sample) {
    int slot;
    long long n;
    char line[WIDE];
    for (slot = 0; slot < SLOTS; slot++) {
        device_t *part = device(d->gpu, slot);
        if (line_of(part, line) && number(line, "gi", &n) && n == gi) return nvmlGpmSampleGet(part, sample);
    }
    return INVALID;
}
typedef struct { unsigned id; ret_t r; double value; const char *names[3]; } metric_t;
typedef struct { unsigned version, count; gpm_t *first, *second; metric_t metrics[]; } metrics_t;
ret_t nvmlGpmMetricsGet(metrics_t *out) {
    unsigned i;
    for (i = 0; i < out->count; i++) {
        metric_t *metric = &out->metrics[i];
        metric->r = metric->id == 2 || metric->id == 3 ? OK : UNSUPPORTED;
        metric->value = metric->id == 2 ? out->second->sm : out->second->occupancy;
    }
    return OK;
}
#endif
