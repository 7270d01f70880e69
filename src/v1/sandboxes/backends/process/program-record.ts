import { constants } from 'node:os';
import { jsonAt, jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';
import { bootId, readProcess, startTimeOf } from '@slipway/common/processes/process-table.js';
import { parsePorts, type SandboxExit } from '../sandbox-backend.js';

/** Identifies a process, so that a later one with its pid is not mistaken for it. */
export interface ProcessIdentity {
  pid: number;
  startTime: string;
  bootId: string;
}

export interface ProgramRecord extends ProcessIdentity {
  run: string;
  /** TCP port of this machine; null when it listens on the Unix socket in its box. */
  port: number | null;
  ports: Record<string, number>;
  networked: boolean;
  namespaced: boolean;
}

/** The identity of a process that we just started and have not waited for; it may have ended. */
export function identifyProcess(pid: number): ProcessIdentity {
  return { pid, startTime: startTimeOf(pid) ?? '', bootId: bootId() };
}

/** A zombie is not alive. */
export function isProgramAlive(record: ProcessIdentity): boolean {
  const found = readProcess(record.pid);
  return found !== null && found.startTime === record.startTime && bootId() === record.bootId;
}

/** A process of one start of a sandbox. */
export function parseStartedProcess(value: unknown): (ProcessIdentity & { run: string }) | null {
  const [pid, run] = [jsonNumber(value, 'pid'), jsonText(value, 'run')];
  const startTime = jsonText(value, 'startTime') ?? '';
  return pid === null || run === null ? null : { pid, startTime, bootId: jsonText(value, 'bootId') ?? '', run };
}

export function parseProgramRecord(text: string): ProgramRecord | null {
  const value = parseJson(text);
  const started = parseStartedProcess(value);
  return started && {
    ...started,
    port: jsonNumber(value, 'port'),
    ports: parsePorts(jsonAt(value, 'ports')),
    networked: jsonAt(value, 'networked') === true,
    namespaced: jsonAt(value, 'namespaced') === true,
  };
}

/** Parses bubblewrap's report: one JSON document per line, the exit code last. */
export function parseBubblewrapStatus(text: string): SandboxExit | null {
  for (const line of text.split('\n').toReversed()) {
    const code = jsonNumber(parseJson(line), 'exit-code');
    if (code !== null) {
      const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128);
      return signal === undefined
        ? { code, signal: null, outOfMemory: false }
        : { code: null, signal: signal[0], outOfMemory: false };
    }
  }
  return null;
}

/** Parses the exit that we wrote down; null when the text is about another start. */
export function parseExit(text: string, { run }: ProgramRecord): SandboxExit | null {
  const value = parseJson(text);
  return jsonText(value, 'run') === run
    ? { code: jsonNumber(value, 'code'), signal: jsonText(value, 'signal'), outOfMemory: false }
    : null;
}
