import type { Request, RequestHandler } from 'express';
import { requireConversationId } from './request-parsing.js';
import type { Conversations } from '../conversations/conversations.js';

/** Where relative paths of a request begin; null: nowhere, they are refused or have a folder of their own. */
export type BaseFolder = (request: Request) => string | null;

export const nowhere: BaseFolder = () => null;

/**
 * The working directory of the conversation whose path a request came by.
 * @throws HttpError 404 when there is no such conversation
 */
export function runtimeFolder(conversations: Conversations): BaseFolder {
  return ({ params }) =>
    conversations.get(requireConversationId(String(params['runtime']))).record.workingDir;
}

/** Refuses every request for a conversation that does not exist, whether it names a path or not. */
export function requireRuntime(baseFolder: BaseFolder): RequestHandler {
  return (request, _response, next) => {
    baseFolder(request);
    next();
  };
}
