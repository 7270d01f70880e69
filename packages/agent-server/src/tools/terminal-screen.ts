/** Rows that the cursor can reach; older ones are final. */
const MAX_ROWS = 200;
/** Rows of the screen that absolute positions count. */
const HEIGHT = 50;
/** Longer rows are final, as an overwrite costs their length. No progress bar is as wide. */
const MAX_COLUMNS = 2_000;
const MAX_SEQUENCE = 4_096;

const CONTROL = /(?!\t)\p{Cc}/gu;
const ESC = '\u001B';
const [DCS, SOS, C1_CSI, ST] = ['\u0090', '\u0098', '\u009B', '\u009C'];
const BEL = '\u0007';
/** Eight-bit forms of OSC, PM and APC. */
const LATE_STRINGS = '\u009D-\u009F';
/** ECMA-48: a control sequence, a string with its end, or a shorter escape. */
const CSI = new RegExp(`(?:${ESC}\\[|${C1_CSI})([0-?]*)[ -/]*([@-~])`, 'y');
const STRING = new RegExp(
  `(?:${ESC}[\\]P^_X]|[${DCS}${SOS}${LATE_STRINGS}])[^${BEL}${ESC}${ST}]*(?:${BEL}|${ESC}\\\\|${ST})`,
  'y',
);
const ESCAPE = new RegExp(`${ESC}[ -/]*[0-Z\\\\\`-~]`, 'y');
const INTRODUCER = new RegExp(`[${ESC}${DCS}${SOS}${C1_CSI}${LATE_STRINGS}]`);

/**
 * Reduces output to what a terminal would show: carriage returns, backspaces and cursor movements are applied,
 * colours are gone. Memory and time are bounded, so it knows only what programs use to show progress.
 */
export class TerminalScreen {
  readonly #commit: (text: string) => void;
  #rows = [{ text: '', end: '' }];
  #row = 0;
  #column = 0;
  #saved = { row: 0, column: 0 };
  #unfinished = '';

  /** @param commit gets text that will not change any more */
  constructor(commit: (text: string) => void) {
    this.#commit = commit;
  }

  write(chunk: string): void {
    const text = this.#unfinished + chunk;
    this.#unfinished = '';
    let at = 0;
    while (at < text.length) {
      CONTROL.lastIndex = at;
      const found = CONTROL.exec(text);
      const end = found?.index ?? text.length;
      this.#put(text.slice(at, end));
      if (found === null) {
        return;
      }
      const next = this.#control(text, end);
      if (next === null) {
        this.#unfinished = text.slice(end);
        return;
      }
      at = next;
    }
  }

  end(): void {
    this.#commitRows(this.#rows.length);
  }

  /** @returns where the text goes on; null: the sequence is not complete */
  #control(text: string, at: number): number | null {
    switch (text[at]) {
      case '\n':
        this.#newLine('\n');
        return at + 1;
      case '\r':
        return this.#carriageReturn(text, at);
      case '\b':
        this.#column = Math.max(0, this.#column - 1);
        return at + 1;
    }
    for (const [pattern, apply] of this.#sequences) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (found !== null) {
        apply(found);
        return pattern.lastIndex;
      }
    }
    const mayFollow = INTRODUCER.test(text[at] ?? '');
    return mayFollow && text.length - at < MAX_SEQUENCE ? null : at + 1;
  }

  readonly #sequences: readonly [RegExp, (found: RegExpExecArray) => void][] = [
    [CSI, ([, parameters = '', final = '']) => this.#apply(final, parameters)],
    [STRING, () => undefined],
    [ESCAPE, ([sequence]) => this.#escapes[sequence.slice(1)]?.()],
  ];

  #carriageReturn(text: string, at: number): number | null {
    if (at + 1 === text.length) {
      return null;
    }
    if (text[at + 1] === '\n') {
      this.#newLine('\r\n');
      return at + 2;
    }
    this.#column = 0;
    return at + 1;
  }

  #put(text: string): void {
    const row = this.#rows[this.#row];
    if (text === '' || row === undefined) {
      return;
    }
    const before = row.text.slice(0, this.#column).padEnd(this.#column);
    row.text = before + text + row.text.slice(this.#column + text.length);
    this.#column += text.length;
    if (row.text.length > MAX_COLUMNS && this.#row === this.#rows.length - 1) {
      this.#commitRows(this.#rows.length);
    }
  }

  #newLine(end: string): void {
    const row = this.#rows[this.#row];
    if (row !== undefined && row.end === '') {
      row.end = end;
    }
    this.#row += 1;
    this.#column = 0;
    if (this.#row === this.#rows.length) {
      this.#rows.push({ text: '', end: '' });
      if (this.#rows.length >= 2 * MAX_ROWS) {
        this.#commitRows(MAX_ROWS);
      }
    }
  }

  #commitRows(count: number): void {
    this.#commit(
      this.#rows
        .splice(0, count)
        .map(({ text, end }) => text + end)
        .join(''),
    );
    if (this.#rows.length === 0) {
      this.#rows.push({ text: '', end: '' });
      this.#column = 0;
    }
    this.#row = Math.max(0, this.#row - count);
    this.#saved.row = Math.max(0, this.#saved.row - count);
  }

  /** Handlers by the final byte of a control sequence. `count` is the first parameter, or 1 where it is missing. */
  readonly #controls: Readonly<Record<string, (count: number, first: number, second: number) => void>> = {
    A: (count) => this.#move(this.#row - count, this.#column),
    B: (count) => this.#move(this.#row + count, this.#column),
    C: (count) => this.#move(this.#row, this.#column + count),
    D: (count) => this.#move(this.#row, this.#column - count),
    E: (count) => this.#move(this.#row + count, 0),
    F: (count) => this.#move(this.#row - count, 0),
    G: (count) => this.#move(this.#row, count - 1),
    H: (count, _, second) => this.#move(this.#top() + count - 1, second - 1),
    f: (count, _, second) => this.#move(this.#top() + count - 1, second - 1),
    J: (_, first) => this.#eraseScreen(first),
    K: (_, first) => this.#eraseLine(first),
    s: () => this.#save(),
    u: () => this.#move(this.#saved.row, this.#saved.column),
    P: (count) => this.#replaceAt(count, ''),
    X: (count) => this.#replaceAt(count, ' '.repeat(Math.min(count, MAX_COLUMNS))),
    '@': (count) => this.#replaceAt(0, ' '.repeat(Math.min(count, MAX_COLUMNS))),
  };

  readonly #escapes: Readonly<Record<string, () => void>> = {
    7: () => this.#save(),
    8: () => this.#move(this.#saved.row, this.#saved.column),
    M: () => this.#move(this.#row - 1, this.#column),
    E: () => this.#newLine('\n'),
    c: () => {
      this.#eraseScreen(2);
      this.#move(this.#top(), 0);
    },
  };

  #apply(final: string, parameters: string): void {
    const [first = 0, second = 0] = parameters.split(';').map((number) => Number.parseInt(number, 10) || 0);
    this.#controls[final]?.(Math.max(1, first), first, second);
  }

  #save(): void {
    this.#saved = { row: this.#row, column: this.#column };
  }

  #move(row: number, column: number): void {
    this.#row = Math.min(Math.max(0, row), this.#rows.length - 1);
    this.#column = Math.min(Math.max(0, column), MAX_COLUMNS);
  }

  #top(): number {
    return Math.max(0, this.#rows.length - HEIGHT);
  }

  /** @param mode what is erased: 0 from the cursor on, 1 up to it, else everything */
  #eraseScreen(mode: number): void {
    const from = mode === 0 ? this.#row + 1 : this.#top();
    const to = mode === 1 ? this.#row : this.#rows.length;
    for (const row of this.#rows.slice(from, to)) {
      row.text = '';
    }
    if (mode !== 1) {
      // Blank rows at the end are no output.
      const kept = mode === 0 ? this.#row : this.#top();
      this.#rows.length = Math.max(kept + 1, 1);
      this.#row = Math.min(this.#row, this.#rows.length - 1);
      const last = this.#rows.at(-1);
      if (last !== undefined) {
        last.end = '';
      }
    }
    this.#eraseLine(mode);
  }

  #eraseLine(mode: number): void {
    const row = this.#rows[this.#row];
    if (row !== undefined) {
      const rest = mode === 1 ? row.text.slice(this.#column + 1) : '';
      const start = mode === 0 ? row.text.slice(0, this.#column) : '';
      row.text = mode === 1 ? `${' '.repeat(this.#column + 1)}${rest}`.trimEnd() : start;
    }
  }

  #replaceAt(count: number, text: string): void {
    const row = this.#rows[this.#row];
    if (row !== undefined && this.#column < row.text.length) {
      row.text = row.text.slice(0, this.#column) + text + row.text.slice(this.#column + count);
    }
  }
}

export function terminalText(text: string): string {
  if (!new RegExp(CONTROL).test(text.replaceAll(/\r?\n/g, ''))) {
    return text;
  }
  const parts: string[] = [];
  const screen = new TerminalScreen((part) => parts.push(part));
  screen.write(text);
  screen.end();
  return parts.join('');
}
