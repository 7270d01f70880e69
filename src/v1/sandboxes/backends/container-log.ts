import { textTail } from '@slipway/common/well-formed-text.js';
const FRAME_HEADER_BYTES = 8;

const REQUIREMENTS =
  'It takes a Linux image with glibc 2.28 or newer and libstdc++ (Debian, Ubuntu, Fedora and their like), or one made FROM the image of "npm run image:agent-server".';

const INCOMPATIBILITIES: [symptom: RegExp, explain: (found: string) => string][] = [
  // The file exists; the kernel does not find the loader that the file names.
  [
    /exec \/opt\/slipway\/bin\/node failed: no such file or directory/i,
    () => 'it has no glibc (Alpine has musl instead)',
  ],
  [/exec \/opt\/slipway\/bin\/node failed: exec format error/i, () => 'it is for another kind of processor'],
  [
    /^\/opt\/slipway\/bin\/node: error while loading shared libraries: ([^\s:]+)/m,
    (library) => `it lacks ${library}`,
  ],
  [
    /^\/opt\/slipway\/bin\/node: .*version `([^\s']+)' not found/m,
    (version) => `its libraries are too old, they lack ${version}`,
  ],
];

/** Strips the 8-byte frame headers (Engine API, "Attach to a container"). `modem.demuxStream` overflows the stack. */
export function demultiplexLog(log: Buffer): string {
  const payloads: Buffer[] = [];
  for (let at = 0; at + FRAME_HEADER_BYTES <= log.length;) {
    const end = at + FRAME_HEADER_BYTES + log.readUInt32BE(at + 4);
    payloads.push(log.subarray(at + FRAME_HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(payloads).toString('utf8');
}

export function lastLines(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) {
    return text;
  }
  const end = textTail(text, maxCharacters);
  const newline = end.indexOf('\n');
  return newline === -1 || newline === end.length - 1 ? end : end.slice(newline + 1);
}

/** Why our agent server cannot run in a foreign image, by the last lines of its log; null when unknown. */
export function explainIncompatibleImage(log: string, image: string): string | null {
  for (const [symptom, explain] of INCOMPATIBILITIES) {
    const found = symptom.exec(log);
    if (found !== null) {
      return `The image ${image} cannot run our agent server: ${explain(found[1] ?? '')}. ${REQUIREMENTS}`;
    }
  }
  return null;
}
