import { describe, expect, it } from '@jest/globals';
import { finishTool } from '../../tools/finish.tool.js';
import { taskTrackerTool, thinkTool } from '../../tools/planning.tools.js';
import { offeredTool, parseCall } from './tool-calls.js';

const tasks = taskTrackerTool(() => []);
const tools = new Map([thinkTool, finishTool, tasks].map((tool) => [tool.name, tool] as const));

describe('parseCall', () => {
  it.each([
    ['think', '{"thought":"a"}', { kind: 'ThinkAction', thought: 'a' }],
    ['think', '"{\\"thought\\":\\"twice\\"}"', { kind: 'ThinkAction', thought: 'twice' }],
    ['task_tracker', '', { kind: 'TaskTrackerAction', command: 'view', task_list: [] }],
  ])('parses %s %s', (name, json, action) => {
    const parsed = parseCall(tools, name, json);
    expect(parsed.isValid && parsed.prepared.action).toEqual(action);
  });

  it.each([
    ['think', '{"thought":', 'are not a JSON object; they were: {"thought":'],
    ['think', '[1]', 'are not a JSON object'],
    ['think', 'null', 'are not a JSON object'],
    ['think', '{}', 'are invalid: thought: '],
    ['fly', '{}', 'There is no tool fly. The tools are: think, finish, task_tracker.'],
  ])('explains what is wrong with %s %s', (name, json, error) => {
    const parsed = parseCall(tools, name, json);
    expect(parsed.isValid ? '' : parsed.error).toContain(error);
  });

  it.each([
    ['HIGH', 'HIGH'],
    ['extreme', 'UNKNOWN'],
    [7, 'UNKNOWN'],
  ])('reads the risk %j as %s', (stated, risk) => {
    expect(parseCall(tools, 'task_tracker', JSON.stringify({ security_risk: stated })).risk).toBe(risk);
  });
});

it('offeredTool asks for the risk only of calls that a user may have to confirm', () => {
  expect(offeredTool(tasks, true).inputSchema).toMatchObject({ required: ['security_risk'] });
  expect(offeredTool(tasks, false).inputSchema).toEqual(tasks.inputSchema);
  expect(offeredTool(finishTool, true).inputSchema).toEqual(finishTool.inputSchema);
});
