import { constants } from 'node:os';
import { jsonAt, jsonNumber, jsonText } from '../../../../common/json-access.js';
import { bootId, readProcess, startTimeOf } from '../../../../common/processes/process-table.js';
import { parsePorts, type SandboxExit } from '../sandbox-backend.js';

/** Names the process of a sandbox so that no other one is ever taken for it. */
export interface ProgramRecord {
  pid: number;
  startTime: string;
  bootId: string;
  /** Names this start of the sandbox. */
  run: string;
  /** The port it was told; null: it says itself which one it took. */
  port: number | null;
  /** Ports for what is started inside, by name. */
  ports: Record<string, number>;
  /** Whether it runs in a pid namespace of its own. */
  namespaced: boolean;
}

/** Null for what is no record. */
export function parseProgramRecord(text: string): ProgramRecord | null {
  const value = parseDocument(text);
  const pid = jsonNumber(value, 'pid');
  const run = jsonText(value, 'run');
  if (pid === null || run === null) {
    return null;
  }
  return {
    pid,
    startTime: jsonText(value, 'startTime') ?? '',
    bootId: jsonText(value, 'bootId') ?? '',
    run,
    port: jsonNumber(value, 'port'),
    ports: parsePorts(jsonAt(value, 'ports')),
    namespaced: jsonAt(value, 'namespaced') === true,
  };
}

/** The identity of a process that was just started by us and is not waited for yet; it may have ended. */
export function identifyProcess(pid: number): Pick<ProgramRecord, 'pid' | 'startTime' | 'bootId'> {
  return { pid, startTime: startTimeOf(pid) ?? '', bootId: bootId() };
}

/** Whether this very process lives; one that ended and is not waited for yet does not. */
export function isProgramAlive(record: ProgramRecord): boolean {
  const found = readProcess(record.pid);
  return found !== null && found.startTime === record.startTime && bootId() === record.bootId;
}

/** The port in a file that a program wrote; null when there is none yet. */
export function parsePort(text: string): number | null {
  const port = /^\d{1,5}\n?$/.test(text) ? Number(text) : 0;
  return port > 0 && port <= 65_535 ? port : null;
}

/** How a program ended, from bubblewrap's reports: one JSON document a line, the last of them with the exit code. */
export function parseBubblewrapStatus(text: string): SandboxExit | null {
  for (const line of text.split('\n').toReversed()) {
    const code = jsonNumber(parseDocument(line), 'exit-code');
    if (code !== null) {
      const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128);
      return signal === undefined
        ? { code, signal: null, outOfMemory: false }
        : { code: null, signal: signal[0], outOfMemory: false };
    }
  }
  return null;
}

/** How the program of this record ended, as it was written down; null when the text tells of another one. */
export function parseExit(text: string, { run }: ProgramRecord): SandboxExit | null {
  const value = parseDocument(text);
  return jsonText(value, 'run') === run
    ? { code: jsonNumber(value, 'code'), signal: jsonText(value, 'signal'), outOfMemory: false }
    : null;
}

/** Parsed JSON; null for what is none. */
export function parseDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
