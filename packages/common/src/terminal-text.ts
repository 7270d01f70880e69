const [ESC, BEL, CSI, ST] = ['\u001b', '\u0007', '\u009b', '\u009c'];

/** Escape sequences of ECMA-48: titles, links and pictures (within a line), colours and cursor movements, and short ones. */
const SEQUENCE = new RegExp(
  [
    String.raw`${ESC}[\]PX^_][^${BEL}${ESC}${ST}\n]*(?:${BEL}|${ESC}\\|${ST})`,
    String.raw`(?:${ESC}\[|${CSI})[0-?]*[ -/]*[@-~]`,
    String.raw`${ESC}[ -/]*[0-~]`,
  ].join('|'),
  'g',
);

/** What a terminal shows of an output, in linear time: `stripVTControlCharacters` looks for the end of each title in all that follows. */
export function withoutTerminalCodes(text: string): string {
  return text.replaceAll(SEQUENCE, '');
}
