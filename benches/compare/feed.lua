-- wrk script: takes new items in, the documents of the lines of the file that ITEMS names, each under an id
-- of its own; each connection with a pause of PAUSE ms before each. KEY is a provider's API key.
local items = {}
for line in io.lines(os.getenv('ITEMS')) do
    local before, kind, behind = line:match('^(.-/media/(%a+)/)[^"]*(.*)$')
    table.insert(items, { kind, before, behind })
    if #items == 20000 then break end
end
local headers = { ['Authorization'] = 'ApiKey ' .. os.getenv('KEY'), ['Content-Type'] = 'application/json' }
local pause, began, at = tonumber(os.getenv('PAUSE') or '14'), os.time(), 0

function delay()
    return pause
end

function request()
    at = at + 1
    local item, id = items[(at - 1) % #items + 1], string.format('fed-%d-%d', began, at)
    return wrk.format('PUT', '/ingest/v1/' .. item[1] .. '/' .. id, headers, item[2] .. id .. item[3])
end

function done(summary, latency)
    print(string.format('%.1f items/s taken in, p95 %.1f ms, %d refused', summary.requests / summary.duration * 1e6,
        latency:percentile(95) / 1e3, summary.errors.status))
end
