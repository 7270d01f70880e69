import type { Request } from 'express';
import type { AuthUser } from './auth-user.js';

/** A request that has passed the guard. */
export interface AuthenticatedRequest extends Request {
  user?: AuthUser;
}
