-- What one memory held after an event, folded for any flame graph: flameGraph() pairs each death with its birth, and
-- shows what has a birth alone. It takes numbers for frames, which get their names back here. Parameters: run, memory, event.
WITH (
  SELECT mapFromArrays(groupArray(concat('0x', lower(leftPad(hex(cityHash64(frame)), 16, '0')))), groupArray(frame))
  FROM (
    SELECT DISTINCT arrayJoin(if(empty(frames), ['(no stack recorded)'], frames)) AS frame
    FROM gpumemprof.stacks
    WHERE run = {run:String}
  )
) AS names
SELECT
  arrayStringConcat(arrayMap(number -> replaceAll(names[number], ';', ':'), splitByChar(';', splitByChar(' ', line)[1])), ';') AS folded,
  toInt64(splitByChar(' ', line)[2]) AS size_bytes
FROM (
  SELECT arrayJoin(flameGraph(arrayMap(frame -> cityHash64(frame), if(empty(s.frames), ['(no stack recorded)'], s.frames)), e.bytes, e.pointer)) AS line
  FROM (
    SELECT run, stack, size_bytes AS bytes, toUInt64(interval + 1) AS pointer
    FROM gpumemprof.intervals
    WHERE run = {run:String} AND memory = {memory:Int64} AND birth_event <= {event:Int64}
    UNION ALL
    SELECT run, stack, -size_bytes AS bytes, toUInt64(interval + 1) AS pointer
    FROM gpumemprof.intervals
    WHERE run = {run:String} AND memory = {memory:Int64} AND death_event <= {event:Int64}
  ) AS e
  LEFT JOIN gpumemprof.stacks AS s ON s.run = e.run AND s.stack = e.stack
)
ORDER BY size_bytes DESC, folded
SETTINGS allow_introspection_functions = 1;
