import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import {
  identifyProcess,
  isProgramAlive,
  parseExit,
  parseProgramRecord,
  parseBubblewrapStatus,
  type ProgramRecord,
} from './sandbox-program.js';

function record(changes: Partial<ProgramRecord> = {}): ProgramRecord {
  return {
    ...identifyProcess(process.pid),
    run: 'a',
    port: null,
    ports: {},
    networked: false,
    namespaced: false,
    ...changes,
  };
}

describe('isProgramAlive', () => {
  it.each([
    ['this very process', {}, true],
    ['a later process with the same pid', { startTime: '1' }, false],
    ['a process from before the last boot', { bootId: 'earlier' }, false],
  ])('%s', (_, changes, expected) => {
    expect(isProgramAlive(record(changes))).toBe(expected);
  });

  it('is false for a process that ended', async () => {
    const child = spawn('sleep', ['1000']);
    const ended = record(identifyProcess(child.pid ?? 0));
    expect(isProgramAlive(ended)).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isProgramAlive(ended)).toBe(false);
  });
});

it('parses its own records and nothing else', () => {
  const written = record({ port: 4000, ports: { WORKER_1: 20_001 }, networked: true, namespaced: true });
  expect(parseProgramRecord(JSON.stringify(written))).toEqual(written);
  expect(parseProgramRecord('')).toBeNull();
  expect(parseProgramRecord('{"pid":1}')).toBeNull();
});

it.each([
  ['{ "child-pid": 7 }\n{ "exit-code": 7 }\n', { code: 7, signal: null }],
  ['{ "exit-code": 0 }', { code: 0, signal: null }],
  ['{ "exit-code": 137 }', { code: null, signal: 'SIGKILL' }],
  ['{ "exit-code": 255 }', { code: 255, signal: null }],
])('parses the report %j', (text, expected) => {
  expect(parseBubblewrapStatus(text)).toEqual({ ...expected, outOfMemory: false });
});

it.each(['', '{ "child-pid": 7 }\n', '{ "exit-'])('finds no exit in %j', (text) => {
  expect(parseBubblewrapStatus(text)).toBeNull();
});

it('accepts only the exit of the same start', () => {
  const text = JSON.stringify({ run: 'b', code: 3, signal: null });
  expect(parseExit(text, record({ run: 'b' }))).toEqual({ code: 3, signal: null, outOfMemory: false });
  expect(parseExit(text, record({ run: 'c' }))).toBeNull();
  expect(parseExit('', record())).toBeNull();
});
