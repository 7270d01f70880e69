import { SetMetadata } from '@nestjs/common';

export const PUBLIC_ROUTE = 'slipway:public';

/** Opens a route to requests without a key; every other route is closed. */
export function Public(): ReturnType<typeof SetMetadata> {
  return SetMetadata(PUBLIC_ROUTE, true);
}
