import { BASE62 } from '../../common/crypto/random-base62.js';

/** A port of a sandbox. */
export interface SandboxPort {
  sandboxId: string;
  /** As the specification names it: `WORKER_1`. */
  name: string;
}

const HOST_LABEL = /^([a-z]+(?:-[a-z]+)?-[1-9]\d?)-([0-9a-z]{1,60})$/;
/** In front of the first digit, so that leading zeros of an id count. */
const START = 1n;

/**
 * The label of a host name for a port of a sandbox. Host names have no upper case and ids do, so the id is written with
 * 36 digits instead of 62: 26 of them for the 22 of an id.
 */
export function toHostLabel({ sandboxId, name }: SandboxPort): string {
  const digits = Array.from(sandboxId, (character) => BigInt(BASE62.indexOf(character)));
  const code = digits.reduce((sum, digit) => sum * 62n + digit, START).toString(36);
  return `${name.toLowerCase().replaceAll('_', '-')}-${code}`;
}

/** The port that a label stands for; null when it stands for none. */
export function parseHostLabel(label: string): SandboxPort | null {
  const [, name, code] = HOST_LABEL.exec(label) ?? [];
  if (name === undefined || code === undefined) {
    return null;
  }
  let rest = Array.from(code).reduce((sum, digit) => sum * 36n + BigInt(parseInt(digit, 36)), 0n);
  let sandboxId = '';
  while (rest > START) {
    sandboxId = BASE62.charAt(Number(rest % 62n)) + sandboxId;
    rest /= 62n;
  }
  return rest === START && sandboxId !== ''
    ? { sandboxId, name: name.toUpperCase().replaceAll('-', '_') }
    : null;
}
