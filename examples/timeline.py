"""Each follower's timeline, kept current through follow, unfollow, post and delete.

In SQL it would be a query that runs again and again:

    SELECT follower, array_agg(post ORDER BY posted_at DESC)
    FROM posts JOIN follows ON follows.followee = posts.author
    GROUP BY follower

Here it is a table. Try it in another terminal:

    echo '{"follower": "ann", "followee": "bob"}={}' | potok produce follows --key-separator =
    echo 'p1={"author": "bob", "text": "Hello", "posted_at": 1}' | potok produce posts --key-separator =
    potok tables get timelines ann
"""

from typing import Any

import potok
from potok import StreamsBuilder


def newest_first(posts: list[Any]) -> list[Any]:
    return sorted(posts, key=lambda post: (-post["posted_at"], post["id"]))


builder = StreamsBuilder("timelines")
posts = builder.table("posts", value="author string, text string, posted_at bigint")
follows = builder.table("follows", key="follower string, followee string")

# The posts of each author, as one row.
posts_of = posts.group_by(lambda id, post: (post["author"], {**post, "id": id}), pairs=True).collect_list(
    name="posts_of"
)

# Each follow with the posts of the one who is followed: a post changes the rows of all followers.
seen = follows.join(posts_of, lambda follow, posts: posts, on=lambda pair, follow: pair["followee"], name="seen")

# What each follower sees of all whom he follows.
timelines = seen.group_by(lambda pair, posts: pair["follower"]).aggregate(
    initializer=list,
    adder=lambda posts, timeline: newest_first(timeline + posts),
    subtractor=lambda posts, timeline: [post for post in timeline if post not in posts],
    name="timelines",
)

if __name__ == "__main__":
    potok.run(builder)
