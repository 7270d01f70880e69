const [ESC, BEL, CSI, ST] = ['\u001b', '\u0007', '\u009b', '\u009c'];

/** Of ECMA-48: titles and links, which end where a line does at the latest; colours and places; and shorter ones. */
const SEQUENCE = new RegExp(
  [
    String.raw`${ESC}\][^${BEL}${ESC}${ST}\n]*(?:${BEL}|${ESC}\\|${ST})`,
    String.raw`(?:${ESC}\[|${CSI})[0-?]*[ -/]*[@-~]`,
    String.raw`${ESC}[ -/]*[0-~]`,
  ].join('|'),
  'g',
);

/** What a terminal shows of an output, in linear time: `stripVTControlCharacters` looks for the end of each title in all that follows. */
export function withoutTerminalCodes(text: string): string {
  return text.replaceAll(SEQUENCE, '');
}
