import { describe, expect, it } from '@jest/globals';
import { FinishTool, ThinkTool } from '../../tools/small-tools.js';
import { TaskTrackerTool } from '../../tools/task-tracker.tool.js';
import { offeredTool, readCall } from './tool-calls.js';

const tasks = new TaskTrackerTool(() => []);
const tools = new Map([new ThinkTool(), new FinishTool(), tasks].map((tool) => [tool.name, tool] as const));

describe('readCall', () => {
  it.each([
    ['think', '{"thought":"a"}', { kind: 'ThinkAction', thought: 'a' }],
    ['think', '"{\\"thought\\":\\"twice\\"}"', { kind: 'ThinkAction', thought: 'twice' }],
    ['task_tracker', '', { kind: 'TaskTrackerAction', command: 'view', task_list: [] }],
  ])('understands %s %s', (name, json, action) => {
    const read = readCall(tools, name, json);
    expect(read.understood && read.prepared.action).toEqual(action);
  });

  it.each([
    ['think', '{"thought":', 'are no JSON object; they were: {"thought":'],
    ['think', '[1]', 'are no JSON object'],
    ['think', 'null', 'are no JSON object'],
    ['think', '{}', 'do not fit: thought: '],
    ['fly', '{}', 'There is no tool fly. There are: think, finish, task_tracker.'],
  ])('explains what is wrong with %s %s', (name, json, error) => {
    const read = readCall(tools, name, json);
    expect(read.understood ? '' : read.error).toContain(error);
  });

  it.each([
    ['HIGH', 'HIGH'],
    ['extreme', 'UNKNOWN'],
    [7, 'UNKNOWN'],
  ])('reads the risk %j as %s', (stated, risk) => {
    expect(readCall(tools, 'task_tracker', JSON.stringify({ security_risk: stated })).risk).toBe(risk);
  });
});

describe('offeredTool', () => {
  it('asks for the risk only of what a user could be asked about', () => {
    expect(offeredTool(tasks, true).inputSchema).toMatchObject({ required: ['security_risk'] });
    expect(offeredTool(tasks, false).inputSchema).toEqual(tasks.inputSchema);
    const finish = new FinishTool();
    expect(offeredTool(finish, true).inputSchema).toEqual(finish.inputSchema);
  });
});
