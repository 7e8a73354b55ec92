-- wrk script: the renditions of a list of pictures in turn, crops at positions spread like random
-- ones, the same for every server.
-- Environment: TEMPLATE (a path with {f}, and for crops {x} {y} {right} {bottom}), NAMES (what
-- stands for {f}, comma between), COLUMNS, ROWS (positions of the crop), GRID (pixels from one
-- position to the next), WIDTH, HEIGHT (of the crop), FIRST (a number to start from, so that a later
-- run continues where an earlier one ended).
local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } wirephoto_time;
int clock_gettime(int clock, wirephoto_time *time);
]]
local CLOCK_MONOTONIC = 1
local read = ffi.new("wirephoto_time")
local names, threads = {}, {}
for name in os.getenv("NAMES"):gmatch("[^,]+") do table.insert(names, name) end
local template, count = os.getenv("TEMPLATE"), tonumber(os.getenv("FIRST"))
local columns, rows = tonumber(os.getenv("COLUMNS")), tonumber(os.getenv("ROWS"))
local grid = tonumber(os.getenv("GRID"))
local width, height = tonumber(os.getenv("WIDTH")), tonumber(os.getenv("HEIGHT"))
-- The inverses of the plastic number and of its square: multiples of them, without the whole
-- part, fill a square evenly, so that a slow server's few crops are spread as a fast one's many.
local ACROSS, DOWN = 0.7548776662466927, 0.5698402909980532
-- Seconds of the first and the last request; global, for done() asks the thread for them.
began, latest = 0, 0

local function now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, read)
   return tonumber(read.seconds) + tonumber(read.nanoseconds) / 1e9
end

function setup(thread) table.insert(threads, thread) end

-- The clock starts here and not at the first request(), which wrk makes while it checks the script.
function init() began = now() end

function request()
   -- But for the first ones a request follows an answer at once, so this is when it came.
   latest = now()
   count = count + 1
   local x, y = math.floor(count * ACROSS % 1 * columns) * grid, math.floor(count * DOWN % 1 * rows) * grid
   local values = { f = names[count % #names + 1], x = x, y = y, right = x + width, bottom = y + height }
   return wrk.format("GET", (template:gsub("{(%a+)}", values)))
end

function done(summary, latency)
   local errors = summary.errors
   local seconds = threads[1]:get("latest") - threads[1]:get("began")
   io.write(string.format("RESULT %d %.6f %.2f %.2f %d\n", summary.requests, seconds,
      latency:percentile(50) / 1000, latency:percentile(99) / 1000,
      errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
