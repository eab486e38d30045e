-- The health of a HudiTable, from its conditions (docs/operate/conditions.md).
local function health(status, message)
  return { status = status, message = message }
end

-- Conditions that do not keep writers from writing: they are told beside the health.
local told = {
  AwaitingProofOfDeath = "True",
  ForeignWriters = "True",
  Degraded = "True",
  ServicesHealthy = "False",
  ClocksAgree = "False",
  BucketSafe = "False",
  BrokerAnswers = "False",
  CallbackDelivered = "False",
  CatalogSynced = "False",
}

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "the table is being deleted")
end
if obj.status == nil or obj.status.conditions == nil then
  return health("Progressing", "the operator has not looked at the table yet")
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return health("Progressing", "the operator has not seen the last change yet")
end

local found, beside = {}, {}
for _, condition in ipairs(obj.status.conditions) do
  found[condition.type] = condition
  if told[condition.type] == condition.status then
    table.insert(beside, condition.type .. ": " .. condition.reason .. ": " .. (condition.message or ""))
  end
end

local function is(kind, status)
  return found[kind] ~= nil and found[kind].status == status
end

local function say(kind)
  local text = found[kind].message
  if text == nil or text == "" then
    text = found[kind].reason
  end
  return table.concat({ text, unpack(beside) }, "; ")
end

if is("Stalled", "True") then
  return health("Degraded", say("Stalled"))
end
if is("RecordsReadable", "False") then
  return health("Degraded", say("RecordsReadable"))
end
if is("Suspended", "True") then
  return health("Suspended", table.concat({ "no attempt starts", unpack(beside) }, "; "))
end
if is("Ready", "True") then
  return health("Healthy", say("Ready"))
end
if found.Ready == nil then
  return health("Progressing", "the operator has not said whether the table is ready")
end
return health("Progressing", say("Ready"))
