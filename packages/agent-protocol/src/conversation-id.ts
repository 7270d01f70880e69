import { z } from 'zod';

const HEX = /^[0-9a-f]{32}$/;

/** A client's form of a conversation's id, normalized to a UUID with dashes; null if it is not a UUID. */
export function toConversationId(text: string): string | null {
  const hex = text.toLowerCase().replaceAll('-', '');
  return HEX.test(hex)
    ? `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
    : null;
}

/** The id of a conversation in any form, normalized. */
export const conversationIdSchema = z.string().transform((text, context) => {
  const id = toConversationId(text);
  if (id === null) {
    context.addIssue({ code: 'custom', message: 'Input should be a valid UUID' });
    return z.NEVER;
  }
  return id;
});
