/** A word as the shell would pass it on, as far as that can be known before it runs. */
export interface ShellWord {
  text: string;
  /** Part of it is known only when it runs: a variable, a substitution, a pattern, or a quote that never ends. */
  isDynamic: boolean;
  nested: string[];
}

export interface ShellCommand {
  words: ShellWord[];
  files: ShellWord[];
  /** What it reads, if that stands in the program itself. */
  input: ShellWord | null;
}

/** One after the other; each stage has all commands that write into the next one. */
export type ShellPipeline = ShellCommand[][];

const MAX_DEPTH = 30;
const OPENERS: Readonly<Record<string, string>> = {
  '{': '}',
  if: 'fi',
  for: 'done',
  while: 'done',
  until: 'done',
  select: 'done',
  case: 'esac',
};
const CLOSERS = new Set(Object.values(OPENERS));
const SKIPPED = new Set(['then', 'do', 'else', 'elif', '!']);
const REDIRECTION = /(?:\d*|&)(?:<<<|<<-?|>>|>\||[<>]&|<>|[<>](?!\())/y;
const BLANK = /(?:[^\S\n]|\\\n)*/y;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', e: '\u001b', a: '\u0007' };

/** The pipelines of a program of the shell, also those inside others. Text that is no program has some, too. */
export function parseShell(source: string): ShellPipeline[] {
  const parser = new ShellParser(source);
  parser.list(null);
  return parser.pipelines;
}

interface Heredoc {
  command: ShellCommand;
  end: string;
  isLiteral: boolean;
}

class ShellParser {
  readonly pipelines: ShellPipeline[] = [];
  readonly #source: string;
  readonly #heredocs: Heredoc[] = [];
  #at = 0;
  #depth = 0;

  constructor(source: string) {
    this.#source = source;
  }

  /** @param closer what ends the list; null: the end of the source */
  list(closer: string | null): ShellCommand[] {
    const commands: ShellCommand[] = [];
    this.#depth += 1;
    while (this.#at < this.#source.length) {
      this.#take(BLANK);
      const char = this.#source[this.#at] ?? '';
      if (char === '\n') {
        this.#at += 1;
        this.#readHeredocs();
      } else if (char === ')') {
        this.#at += 1;
        if (closer === ')') {
          break;
        }
      } else if (/[;&|]/.test(char)) {
        this.#at += 1;
      } else if (this.#closes(closer)) {
        break;
      } else if (char !== '') {
        commands.push(...this.#pipeline());
      }
    }
    this.#depth -= 1;
    return commands;
  }

  /** Takes a word that closes a list. One that closes another is dropped. */
  #closes(closer: string | null): boolean {
    const [word] = /^(?:\}|[a-z]+)(?=[\s;&|)]|$)/.exec(this.#source.slice(this.#at, this.#at + 10)) ?? [];
    if (word === undefined || !CLOSERS.has(word)) {
      return false;
    }
    this.#at += word.length;
    return word === closer;
  }

  #pipeline(): ShellCommand[] {
    const stages: ShellPipeline = [];
    do {
      stages.push(this.#stage());
      this.#take(BLANK);
    } while (this.#take(/\|&?(?!\|)\s*/y) !== '');
    this.pipelines.push(stages);
    return stages.flat();
  }

  #stage(): ShellCommand[] {
    const command: ShellCommand = { words: [], files: [], input: null };
    const inner: ShellCommand[] = [];
    for (;;) {
      this.#take(BLANK);
      const char = this.#source[this.#at] ?? '';
      if (command.words.length === 1 && this.#take(/\(\s*\)/y) !== '') {
        // The name of a function; its body follows.
        command.words = [];
      } else if (char === '(') {
        this.#at += 1;
        inner.push(...this.#group(')'));
      } else if (char === '' || /[\n;&|)]/.test(char)) {
        if (char !== '&' || this.#take(/&>>?/y) === '') {
          break;
        }
        command.files.push(this.#spacedWord());
      } else if (char === '#') {
        this.#take(/[^\n]*/y);
      } else if (!this.#redirection(command)) {
        const start = this.#at;
        const word = this.#word();
        const raw = this.#source.slice(start, this.#at);
        const closer = command.words.length === 0 && Object.hasOwn(OPENERS, raw) ? OPENERS[raw] : undefined;
        if (closer !== undefined) {
          inner.push(...this.#group(closer));
        } else if (raw === 'function' && command.words.length === 0) {
          this.#spacedWord();
        } else if (command.words.length > 0 || !SKIPPED.has(raw)) {
          command.words.push(word);
        }
      }
    }
    return command.words.length + command.files.length > 0 ? [...inner, command] : inner;
  }

  #group(closer: string): ShellCommand[] {
    return this.#depth < MAX_DEPTH ? this.list(closer) : [];
  }

  #redirection(command: ShellCommand): boolean {
    const sign = this.#take(REDIRECTION);
    if (sign === '') {
      return false;
    }
    const start = this.#at;
    const word = this.#spacedWord();
    if (sign.endsWith('<<<')) {
      command.input = word;
    } else if (sign.includes('<<')) {
      const isLiteral = /['"\\]/.test(this.#source.slice(start, this.#at));
      this.#heredocs.push({ command, end: word.text, isLiteral });
    } else {
      command.files.push(word);
    }
    return true;
  }

  #readHeredocs(): void {
    for (const { command, end, isLiteral } of this.#heredocs.splice(0)) {
      const lines: string[] = [];
      while (this.#at < this.#source.length) {
        const line = this.#take(/[^\n]*\n?/y);
        if (line.trim() === end) {
          break;
        }
        lines.push(line);
      }
      const text = lines.join('');
      command.input = { text, isDynamic: !isLiteral && /[$`]/.test(text), nested: [] };
    }
  }

  #spacedWord(): ShellWord {
    this.#take(BLANK);
    return this.#word();
  }

  #word(): ShellWord {
    const word: ShellWord = { text: '', isDynamic: false, nested: [] };
    while (this.#at < this.#source.length) {
      const char = this.#source[this.#at] ?? '';
      const isProcess = /[<>]/.test(char) && this.#source[this.#at + 1] === '(';
      if (/[\s;&|()]/.test(char) || (/[<>]/.test(char) && !isProcess)) {
        break;
      }
      this.#at += 1;
      if (char === '\\') {
        const escaped = this.#source[this.#at] ?? '';
        word.text += escaped === '\n' ? '' : escaped;
        this.#at += 1;
      } else if (char === "'") {
        word.text += this.#until("'", word);
      } else if (char === '"') {
        this.#quoted(word);
      } else if (isProcess) {
        this.#at += 1;
        this.#substitution(word);
      } else if (char === '$' || char === '`') {
        this.#expansion(char, word);
      } else {
        word.isDynamic ||= isPattern(word.text, char);
        word.text += char;
      }
    }
    return word;
  }

  #quoted(word: ShellWord): void {
    while (this.#at < this.#source.length) {
      const char = this.#source[this.#at] ?? '';
      this.#at += 1;
      if (char === '"') {
        return;
      }
      if (char === '\\' && /[$`"\\\n]/.test(this.#source[this.#at] ?? '')) {
        word.text += this.#source[this.#at] === '\n' ? '' : (this.#source[this.#at] ?? '');
        this.#at += 1;
      } else if ((char === '$' && this.#source[this.#at] !== "'") || char === '`') {
        this.#expansion(char, word);
      } else {
        word.text += char;
      }
    }
    word.isDynamic = true;
  }

  #expansion(char: string, word: ShellWord): void {
    if (char === '`') {
      word.nested.push(this.#until('`', word));
      word.isDynamic = true;
    } else if (this.#take(/'/y) !== '') {
      word.text += unescaped(this.#take(/(?:\\[^]|[^'\\])*/y));
      this.#take(/'/y);
    } else if (this.#take(/\(/y) !== '') {
      this.#substitution(word);
    } else {
      const name = this.#take(/\{[^}]*\}|\w+|[@*#?$!-]/y);
      word.text += `$${name}`;
      word.isDynamic ||= name !== '';
    }
  }

  #substitution(word: ShellWord): void {
    const start = this.#at;
    let depth = 1;
    while (this.#at < this.#source.length && depth > 0) {
      const part = this.#take(/'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^]/y);
      depth += part === '(' ? 1 : part === ')' ? -1 : 0;
    }
    word.nested.push(this.#source.slice(start, depth === 0 ? this.#at - 1 : this.#at));
    word.isDynamic = true;
  }

  /** The text up to a sign, which is taken too. Without one the rest is taken, and nothing is known of it. */
  #until(sign: string, word: ShellWord): string {
    const end = this.#source.indexOf(sign, this.#at);
    const text = this.#source.slice(this.#at, end === -1 ? undefined : end);
    this.#at += text.length + 1;
    word.isDynamic ||= end === -1;
    return text;
  }

  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const text = pattern.exec(this.#source)?.[0] ?? '';
    this.#at += text.length;
    return text;
  }
}

/** Whether a sign of a pattern stands where it may decide about the whole of a path: in its first folder. */
function isPattern(before: string, sign: string): boolean {
  return before === '' ? sign === '{' : /[*?[{]/.test(sign) && /^(?:\/|~)[^/]*$/.test(before);
}

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|([^]))/g,
    (_all, hex?: string, unicode?: string, octal?: string, char = '') => {
      const code = hex ?? unicode;
      if (code !== undefined) {
        return String.fromCodePoint(Number.parseInt(code, 16));
      }
      return octal === undefined ? (ESCAPES[char] ?? char) : String.fromCodePoint(Number.parseInt(octal, 8));
    },
  );
}
