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

/** As many digits as a number holds exactly; with big integers for each digit a page of sandboxes would take long. */
const AT_ONCE = 8;

/**
 * Labels of host names for the ports of a sandbox. Host names have no upper case and ids do, so the id is written with
 * 36 digits instead of 62: 26 of them for the 22 of an id.
 */
export function toHostLabels(sandboxId: string, names: readonly string[]): string[] {
  let code = START;
  for (let begin = 0; begin < sandboxId.length; begin += AT_ONCE) {
    const digits = Array.from(sandboxId.slice(begin, begin + AT_ONCE), (digit) => BASE62.indexOf(digit));
    const value = digits.reduce((sum, digit) => sum * 62 + digit, 0);
    code = code * 62n ** BigInt(digits.length) + BigInt(value);
  }
  const text = code.toString(36);
  return names.map((name) => `${name.toLowerCase().replaceAll('_', '-')}-${text}`);
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
