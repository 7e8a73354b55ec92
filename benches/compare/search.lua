-- Sends the requests of the file that REQUESTS names, one after the other, each thread from another
-- place on: lines of a path with its query, a tab, and an API key.
local requests, thread = {}, 0
for line in io.lines(os.getenv('REQUESTS')) do
    local path, key = line:match('^(.-)\t(.*)$')
    table.insert(requests, { path, { ['Authorization'] = 'ApiKey ' .. key } })
end

function setup(one)
    one:set('start', thread)
    thread = thread + 1
end

local at
function request()
    at = ((at or start * 61) % #requests) + 1
    return wrk.format('GET', requests[at][1], requests[at][2])
end


function done(summary, latency)
    print(string.format('%.1f searches/s, p50 %.1f ms, p95 %.1f ms, p99 %.1f ms, max %.1f ms, %d not 200',
        summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
        latency:percentile(99) / 1e3, latency.max / 1e3, summary.errors.status))
end
