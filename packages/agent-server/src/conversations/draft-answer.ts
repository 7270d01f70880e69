import { randomUUID } from 'node:crypto';
import type { Draft } from '../engine/agent-engine.js';
import type { SecretMasker } from '../secret-masker.js';

/** Pieces that come within this time are told together. */
const DRAFT_MS = 50;
/** What may become a tag of reasoning, a note that text was left out, or half a character; behind a note nothing is told. */
const UNSETTLED = /\n\[\.\.\. \d[^]*$|\n(\[[. ]*)?$|<[^<>\s]{0,9}$|[\uD800-\uDBFF]$/;

const NOTHING: Draft = { text: '', reasoning: '' };

export interface ToldDraft extends Draft {
  /** Id of the event that it becomes, unless it is thrown away. */
  id: string;
  /** Position of the event before it. */
  anchor: number;
  /** Rises when what was told before is no part of it any more. */
  attempt: number;
}

/** The answer that a model is writing, masked: told to those who listen, and never stored. */
export class DraftAnswer {
  readonly #mask: SecretMasker['begun'];
  readonly #anchor: () => number;
  readonly #listeners = new Set<() => void>();
  #written: (() => Draft) | null = null;
  /** The latest one, or null if it was thrown away. It may be in the log by now. */
  told: ToldDraft | null = null;
  /** Whether what was told is of what is being written. */
  #isTold = false;
  /** What was told, unmasked: it is not masked again with each piece. */
  #source = NOTHING;
  #timer: NodeJS.Timeout | undefined;

  constructor(mask: SecretMasker['begun'], anchor: () => number) {
    this.#mask = mask;
    this.#anchor = anchor;
  }

  /** @returns a function that ends it */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#schedule();
    return () => {
      this.#listeners.delete(listener);
    };
  }

  write(draft: (() => Draft) | null): void {
    this.#written = draft;
    this.#schedule();
    if (draft === null && this.#isTold) {
      this.#show(null);
    }
  }

  /** It is complete. @returns the id of its event; undefined: it was not told */
  end(): string | undefined {
    const id = this.#isTold ? this.told?.id : undefined;
    this.#written = null;
    this.#isTold = false;
    return id;
  }

  #schedule(): void {
    if (this.#timer === undefined && this.#written !== null && this.#listeners.size > 0) {
      this.#timer = setTimeout(() => this.#tell(), DRAFT_MS).unref();
    }
  }

  #tell(): void {
    this.#timer = undefined;
    const written = this.#written?.() ?? NOTHING;
    const told = this.#isTold ? this.told : null;
    const goesOn =
      written.text.startsWith(this.#source.text) && written.reasoning.startsWith(this.#source.reasoning);
    const [before, source] = told !== null && goesOn ? [told, this.#source] : [NOTHING, NOTHING];
    const text = this.#settle(written.text, source.text);
    const reasoning = this.#settle(written.reasoning, source.reasoning);
    const next = {
      text: join(before.text, text.masked),
      reasoning: join(before.reasoning, reasoning.masked),
    };
    const { id = randomUUID(), anchor = this.#anchor(), attempt = 1 } = told ?? {};
    if (next.text !== (told ?? NOTHING).text || next.reasoning !== (told ?? NOTHING).reasoning) {
      this.#source = { text: text.source, reasoning: reasoning.source };
      this.#show({ id, anchor, attempt: told === null || goesOn ? attempt : attempt + 1, ...next });
    }
  }

  #settle(text: string, source: string): { masked: string; source: string } {
    const { length, masked } = this.#mask(text.slice(source.length).replace(UNSETTLED, ''));
    return { masked, source: text.slice(0, source.length + length) };
  }

  #show(told: ToldDraft | null): void {
    this.told = told;
    this.#isTold = told !== null;
    this.#listeners.forEach((listener) => listener());
  }
}

function join(told: string, more: string): string {
  return told === '' ? more.trimStart() : told + more;
}
