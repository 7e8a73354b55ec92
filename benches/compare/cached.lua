-- wrk script: one address again and again; prints the result in a line.
function done(summary, latency)
   local errors = summary.errors
   io.write(string.format("RESULT %d %d %.2f %.2f %d\n", summary.requests, summary.duration,
      latency:percentile(50) / 1000, latency:percentile(99) / 1000,
      errors.status + errors.connect + errors.read + errors.write + errors.timeout))
end
