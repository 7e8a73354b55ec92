-- wrk script: the crops of crops.lua, with a pause of half to whole PAUSE ms before each request.
dofile(debug.getinfo(1, "S").source:sub(2):gsub("paced_crops", "crops"))
local pause = tonumber(os.getenv("PAUSE"))

function delay()
   return math.random(pause / 2, pause)
end
