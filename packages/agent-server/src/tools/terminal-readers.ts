import { readdirSync, readFileSync, statSync } from 'node:fs';

/** Numbers of system calls by architecture: what programs wait in that read a terminal. */
const CALLS: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  x64: { read: [0, 19], select: [23, 270], poll: [7, 271], epoll: [232, 281, 441] },
  arm64: { read: [63, 65], select: [72], poll: [73], epoll: [22, 441] },
};

/** `sure`: it reads the terminal and nothing else; `events`: beside other things; `perhaps`: it cannot be seen. */
export type Waiting = 'sure' | 'events' | 'perhaps';

export interface Reader {
  waiting: Waiting;
  /** Another one once the thread has been awake since. */
  state: string;
}

/** The threads of a process that wait for input from that terminal, as `/proc` shows them (proc(5)). */
export function terminalReaders(pid: number, terminal: number): Reader[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .slice(0, MAX_THREADS)
      .flatMap((thread) => readerOf(pid, `/proc/${pid}/task/${thread}`, terminal) ?? []);
  } catch {
    // It has ended.
    return [];
  }
}

/** The device of the terminal that a shell holds, whatever its standard input is at the moment; null for none. */
export function terminalOf(shell: number): number | null {
  try {
    const devices = readdirSync(`/proc/${shell}/fd`).map((descriptor) => deviceOf(shell, descriptor));
    return devices.find((device) => isTerminal(device)) ?? null;
  } catch {
    return null;
  }
}

export function isStopped(pid: number): boolean {
  return /^State:\s*T/m.test(readText(`/proc/${pid}/status`));
}

function deviceOf(pid: number, descriptor: number | string): number | null {
  try {
    return statSync(`/proc/${pid}/fd/${descriptor}`).rdev;
  } catch {
    return null;
  }
}

/** A slave of `/dev/pts`. */
function isTerminal(device: number | null): boolean {
  const major = device === null ? 0 : (device >> 8) & 0xfff;
  return major >= FIRST_PTS_MAJOR && major <= LAST_PTS_MAJOR;
}

const MAX_THREADS = 64;
const [FIRST_PTS_MAJOR, LAST_PTS_MAJOR] = [136, 143];

function readerOf(pid: number, thread: string, terminal: number): Reader | null {
  const status = readText(`${thread}/status`);
  const awake = /^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1] ?? '';
  if (!/^State:\s*S/m.test(status)) {
    return null;
  }
  const waiting = waitingIn(pid, readText(`${thread}/syscall`), terminal);
  return waiting && { waiting, state: `${thread} ${awake}` };
}

function waitingIn(pid: number, call: string, terminal: number): Waiting | null {
  const has = (descriptor: number | string): boolean => deviceOf(pid, descriptor) === terminal;
  const [name, first, second] = call.split(' ').map(Number);
  const kind = Object.entries(CALLS[process.arch] ?? {}).find(([, numbers]) =>
    numbers.includes(name ?? -1),
  )?.[0];
  if (call === '' || (kind === 'poll' && has(0) && second !== 0)) {
    return 'perhaps';
  }
  switch (kind) {
    case 'read':
      return has(first ?? -1) ? 'sure' : null;
    case 'select':
      return has(0) && first !== 0 ? (first === 1 ? 'sure' : 'perhaps') : null;
    case 'epoll':
      return [...readText(`/proc/${pid}/fdinfo/${first}`).matchAll(/^tfd:\s*(\d+)/gm)].some(([, tfd = '']) =>
        has(tfd),
      )
        ? 'events'
        : null;
    default:
      return null;
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
