/** Small models write without end. */
const USUAL_LIMIT = 16_384;

/**
 * Families that write less, by the pages of models of OpenAI, Anthropic, DeepSeek and Google; the catalogue of prices knows no
 * lengths. A request for more is refused, which costs each conversation a request.
 */
const SMALLER: readonly (readonly [RegExp, number])[] = [
  [/gpt-3\.5|gpt-4-(?:turbo|1106|0125)|gpt-4o-2024-05-13|claude-3-(?:opus|sonnet|haiku)/i, 4_096],
  [/gpt-4(?:$|-0[36])|claude-3[.-]5|deepseek-chat|gemini-(?:1\.5|2\.0)/i, 8_192],
];

/** Tokens that an answer of the model may have where its profile says nothing. */
export function answerLimit(model: string): number {
  return SMALLER.find(([family]) => family.test(model))?.[1] ?? USUAL_LIMIT;
}
