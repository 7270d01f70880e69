import { textTail } from '@slipway/common/well-formed-text.js';
const FRAME_HEADER_BYTES = 8;

const REQUIREMENTS =
  'It takes a Linux image with glibc 2.28 or newer and libstdc++ (Debian, Ubuntu, Fedora and their like), or one made FROM the image of "npm run image:agent-server".';

/** What a program's last lines say when our Node.js cannot run in an image, and what is wrong with the image then. */
const INCOMPATIBILITIES: [symptom: RegExp, explain: (found: string) => string][] = [
  // The file is there; what the kernel does not find is the loader that the file names.
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

/**
 * The text of a container's log. Without a terminal the engine sends frames of 8 bytes (stream, 3 unused, length as
 * big-endian number) and a payload: Engine API, "Attach to a container", stream format.
 *
 * Not by `modem.demuxStream` of dockerode 5: it recurses twice per frame, so that a log of some 4,000 short lines ends
 * the process with a stack overflow (an uncaught exception in a stream's listener), and it drops an incomplete last
 * frame. The number of frames is up to the program in the sandbox wherever the engine does not honour `tail`.
 */
export function demultiplexLog(log: Buffer): string {
  const payloads: Buffer[] = [];
  for (let at = 0; at + FRAME_HEADER_BYTES <= log.length;) {
    const end = at + FRAME_HEADER_BYTES + log.readUInt32BE(at + 4);
    payloads.push(log.subarray(at + FRAME_HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(payloads).toString('utf8');
}

/** The end of a text, whole lines where there is more than `maxCharacters`. */
export function lastLines(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) {
    return text;
  }
  const end = textTail(text, maxCharacters);
  const newline = end.indexOf('\n');
  return newline === -1 || newline === end.length - 1 ? end : end.slice(newline + 1);
}

/**
 * Why our agent server cannot run in an image that has none of its own; null when the log shows no such reason.
 *
 * @param log the program's last lines
 */
export function explainIncompatibleImage(log: string, image: string): string | null {
  for (const [symptom, explain] of INCOMPATIBILITIES) {
    const found = symptom.exec(log);
    if (found !== null) {
      return `The image ${image} cannot run our agent server: ${explain(found[1] ?? '')}. ${REQUIREMENTS}`;
    }
  }
  return null;
}
