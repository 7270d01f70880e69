const CHARACTERS_PER_TOKEN = 4;
const CHARACTERS_PER_IMAGE = 4_000;

/** Roughly how many tokens a value takes as a part of a prompt; for deciding, never for billing. */
export function estimateTokens(value: unknown): number {
  let images = 0;
  const text = JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === 'string' && member.startsWith('data:')) {
      images += 1;
      return '';
    }
    return member;
  });
  return Math.ceil(((text ?? '').length + images * CHARACTERS_PER_IMAGE) / CHARACTERS_PER_TOKEN);
}
