-- wrk script: crops of 800x600 at positions that look random and never come twice.
-- Environment: ITEMS (ids and sizes, "id:width:height,…"), KEY (an API key), FIRST (a number to
-- start from, so that a later run goes on where an earlier one ended).
local items = {}
for id, width, height in os.getenv("ITEMS"):gmatch("([^:,]+):(%d+):(%d+)") do
   table.insert(items, { id = id, columns = width - 800 + 1, rows = height - 600 + 1 })
end
local key, count = os.getenv("KEY"), tonumber(os.getenv("FIRST") or "0")

function request()
   local item = items[count % #items + 1]
   -- A prime step through all positions meets each of them once.
   local at = (math.floor(count / #items) * 7368787) % (item.columns * item.rows)
   count = count + 1
   local x, y = at % item.columns, math.floor(at / item.columns)
   local crop = string.format("-crop_w800_h600_x%d_y%d.jpg?ak=%s", x, y, key)
   return wrk.format("GET", "/media/" .. item.id .. crop)
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format("RESULT %d %d %.2f %.2f %d\n", summary.requests, summary.duration,
      latency:percentile(50) / 1000, latency:percentile(99) / 1000,
      errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
