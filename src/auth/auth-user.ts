/** Who a request acts for. */
export interface AuthUser {
  id: string;
  email: string;
  isAdmin: boolean;
  /** Id of the key that was presented. */
  keyId: string;
}
