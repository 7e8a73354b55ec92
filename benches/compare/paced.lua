-- wrk script: one address again and again, each connection with a pause of 0 to PAUSE ms before each
-- request, so that what is measured is the wait and not the end of the machine.
local pause = tonumber(os.getenv("PAUSE") or "40")

function delay()
   return math.random(0, pause)
end

function done(summary, latency)
   local errors = summary.errors
   io.write(string.format("RESULT %d %d %.3f %.3f %d\n", summary.requests, summary.duration,
      latency:percentile(50) / 1000, latency:percentile(99) / 1000,
      errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
